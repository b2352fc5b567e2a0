"""Files are there whole or not at all."""

import errno
import os
import stat

import pytest

from manifoldknn.base.atomic import replaced_file


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
