import pytest

from manifoldknn.device.memory import room_in_groups

SECOND = ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
FIRST = (
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def member(root, *lines):
    write(root / "proc/self/cgroup", "".join(f"{line}\n" for line in lines))


def group(root, names, path, limit, used, cache=None):
    mount, limit_name, used_name, cache_name = names
    folder = root / mount / path
    write(folder / limit_name, f"{limit}\n")
    write(folder / used_name, f"{used}\n")
    if cache is not None:
        # Other counters have names that begin or end alike.
        lines = ["anon 7", f"x{cache_name} 1", f"{cache_name}_more 2", f"{cache_name} {cache}"]
        write(folder / "memory.stat", "\n".join(lines) + "\n")


@pytest.mark.parametrize("names", [SECOND, FIRST])
@pytest.mark.parametrize(
    ("limit", "used", "cache", "room"),
    [
        (1000, 300, None, 700),
        (1000, 300, 100, 800),
        (1000, 300, 5000, 1000),
        (1000, 1200, 100, 0),
    ],
)
def test_files_that_can_be_dropped_do_not_count(tmp_path, names, limit, used, cache, room):
    member(tmp_path, "0::/" if names is SECOND else "5:cpu,memory:/")
    group(tmp_path, names, "", limit, used, cache)
    assert room_in_groups(tmp_path) == room


@pytest.mark.parametrize("names", [SECOND, FIRST])
def test_the_tightest_group_on_the_way_to_the_root_counts(tmp_path, names):
    member(tmp_path, "0::/a/b" if names is SECOND else "5:memory:/a/b")
    group(tmp_path, names, "a/b", 1000, 100)
    assert room_in_groups(tmp_path) == 900
    group(tmp_path, names, "a", 2000, 1500)
    group(tmp_path, names, "a/b/other", 10, 0)
    assert room_in_groups(tmp_path) == 500
    group(tmp_path, names, "", 400, 0)
    assert room_in_groups(tmp_path) == 400


def test_a_group_without_a_limit_says_nothing(tmp_path):
    member(tmp_path, "0::/a")
    group(tmp_path, SECOND, "a", "max", 100)
    assert room_in_groups(tmp_path) is None
    group(tmp_path, SECOND, "", 500, 100)
    assert room_in_groups(tmp_path) == 400


@pytest.mark.parametrize("path", ["/docker/of/the/host", "/../elsewhere"])
def test_a_path_that_is_not_there_leaves_the_mounted_root(tmp_path, path):
    member(tmp_path, f"0::{path}")
    group(tmp_path, SECOND, "", 1000, 300)
    assert room_in_groups(tmp_path) == 700


def test_both_versions_side_by_side(tmp_path):
    member(tmp_path, "4:cpu:/x", "3:memory:/job:7", "0::/user")
    group(tmp_path, FIRST, "job:7", 1000, 300)
    group(tmp_path, SECOND, "user", 5000, 0)
    assert room_in_groups(tmp_path) == 700


def test_no_groups_or_nonsense(tmp_path):
    assert room_in_groups(tmp_path) is None
    member(tmp_path, "0::/")
    assert room_in_groups(tmp_path) is None
    group(tmp_path, SECOND, "", "nonsense", 300)
    assert room_in_groups(tmp_path) is None
