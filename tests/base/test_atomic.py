"""Files are there whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
import tempfile

import pytest

from manifoldknn.base.atomic import replaced_file, replaced_folder, temporary_folder, together

needs_locks = pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")


def test_file_appears_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    with replaced_file(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_no_other(tmp_path, failure):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fail():
        with replaced_file(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_existing_file_is_replaced_only_with_force(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError), replaced_file(path, force=False):
        pass
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_made_meanwhile_is_not_replaced(tmp_path, monkeypatch, links):
    path = tmp_path / "a.txt"
    if not links:
        monkeypatch.setattr(os, "link", _no_links)

    def meet():
        with replaced_file(path, force=False) as file:
            file.write(b"ours")
            path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        meet()
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("links", [True, False])
def test_new_file_without_force(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    with replaced_file(tmp_path / "a.txt", force=False) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["a.txt"]


def _no_links(*_):
    raise OSError("no hard links here")


def test_permissions_are_the_usual_or_the_old(tmp_path):
    path = tmp_path / "a.txt"
    plain = tmp_path / "plain.txt"
    plain.write_bytes(b"")
    with replaced_file(path):
        pass
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    with replaced_file(path):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_bytes(b"old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    with replaced_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("force", [True, False])
def test_only_ordinary_files_are_replaced(tmp_path, force):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path):
        with pytest.raises(ValueError, match="no ordinary file"), replaced_file(path, force=force):
            pass
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_made_meanwhile_is_not_replaced(tmp_path):
    def meet():
        with replaced_file(tmp_path / "pipe") as file:
            file.write(b"ours")
            os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ValueError, match="no ordinary file"):
        meet()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space") as caught, replaced_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "a")
    with pytest.raises(OSError, match="odd") as caught, replaced_file(tmp_path / "a"):
        raise OSError("odd")
    assert caught.value.filename is None
    assert os.listdir(tmp_path) == []


def left_by_a_killed_run(folder, name):
    """Return what a process that is no more began to write to a file."""
    code = (
        "import os, signal, sys\n"
        "from manifoldknn.base.atomic import replaced_file\n"
        "with replaced_file(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(folder / name)], check=False)
    return [path for path in folder.iterdir() if path.suffix == ".part"]


@needs_locks
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    other = tmp_path / ".a.txt.backup.part"  # by somebody else
    other.write_bytes(b"")
    assert len(left_by_a_killed_run(tmp_path, "a.txt")) == 2
    with replaced_file(tmp_path / "b.txt"):
        pass
    assert len(os.listdir(tmp_path)) == 3  # another target leaves it alone
    with replaced_file(tmp_path / "a.txt"):
        pass
    assert sorted(os.listdir(tmp_path)) == [other.name, "a.txt", "b.txt"]


@needs_locks
def test_what_is_being_written_is_not_removed(tmp_path):
    with replaced_file(tmp_path / "a.txt") as first:
        first.write(b"first")
        with replaced_file(tmp_path / "a.txt") as second:
            second.write(b"second")
        assert (tmp_path / "a.txt").read_bytes() == b"second"
    assert (tmp_path / "a.txt").read_bytes() == b"first"


@needs_locks
def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    made, make = [], tempfile.mkstemp

    def swept_once(*arguments):
        handle, name = make(*arguments)
        made.append(name)
        if len(made) == 1:
            os.unlink(name)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", swept_once)
    with replaced_file(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert len(made) == 2
    assert os.listdir(tmp_path) == ["a.txt"]


@needs_locks
def test_folders_of_killed_runs_are_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    code = (
        "import os, signal, sys, tempfile\n"
        "from manifoldknn.base.atomic import temporary_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'a').write_bytes(b'a')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert (left / "a").exists()
    with temporary_folder() as folder, temporary_folder() as another:
        assert sorted(tmp_path.iterdir()) == sorted([folder, another])
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["a" * 254, "ä" * 127])
def test_names_as_long_as_can_be(tmp_path, name):
    with replaced_file(tmp_path / name) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == [name]


def test_several_appear_together(tmp_path):
    (tmp_path / "b").write_bytes(b"old")
    with together():
        for name in "abc":
            with replaced_file(tmp_path / name, force=name != "c") as file:
                file.write(name.encode())
        assert (tmp_path / "b").read_bytes() == b"old"
        assert not (tmp_path / "a").exists()
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("when", ["inside", "at the end"])
def test_several_or_none(tmp_path, monkeypatch, when, links):
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    (tmp_path / "b").write_bytes(b"old")

    def write():
        with together():
            for name in "abc":
                with replaced_file(tmp_path / name, force=name != "c") as file:
                    file.write(name.encode())
            if when == "inside":
                raise KeyboardInterrupt
            (tmp_path / "c").write_bytes(b"theirs")

    with pytest.raises((KeyboardInterrupt, FileExistsError)):
        write()
    assert (tmp_path / "b").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["b"] + ["c"] * (when == "at the end")
    if when == "at the end":
        assert (tmp_path / "c").read_bytes() == b"theirs"


@pytest.mark.parametrize("names", ["a", "ab"])
def test_interrupted_between_two_names(tmp_path, monkeypatch, names):
    """One file is there, the new one; of several all are the old ones."""
    replace, done = os.replace, []

    def replace_and_stop(*paths):
        replace(*paths)
        done.append(paths)
        if len(done) == 1:
            raise KeyboardInterrupt

    for name in names:
        (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr(os, "replace", replace_and_stop)

    def write():
        with together():
            for name in names:
                with replaced_file(tmp_path / name) as file:
                    file.write(b"new")

    with pytest.raises(KeyboardInterrupt):
        write()
    wanted = b"new" if names == "a" else b"old"
    assert [(tmp_path / name).read_bytes() for name in names] == [wanted] * len(names)
    assert sorted(os.listdir(tmp_path)) == list(names)


@needs_locks
def test_a_folder_appears_whole(tmp_path):
    """One that a killed run left is removed by the next; it stayed for ever."""
    left = tmp_path / ".answers.abcd1234.part"
    left.mkdir()
    (left / "part").write_text("half")
    with replaced_folder(tmp_path / "answers") as aside:
        assert not left.exists()
        (aside / "part").write_text("whole")
        assert not (tmp_path / "answers").exists()
    assert os.listdir(tmp_path) == ["answers"]
    assert (tmp_path / "answers" / "part").read_text() == "whole"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "answers").stat().st_mode) == 0o777 & ~mask
    with pytest.raises(RuntimeError), replaced_folder(tmp_path / "other"):
        raise RuntimeError
    assert os.listdir(tmp_path) == ["answers"]
