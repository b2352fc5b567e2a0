"""Arrays in a file: what goes in comes out, and nothing else does."""

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.files.archive import ModelFileError, read_archive, write_archive

ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 4), dtype=np.float32),
    "numbers": np.array([1, -2, 3], dtype=np.int32),
}
DATA = {"name": 'Zoë \n"x"', "list": [1, 2.5, None, True]}
FORM = {"kind": "test", "version": 2}


@pytest.fixture
def path(tmp_path):
    write_archive(tmp_path / "a.bin", ARRAYS, DATA, **FORM)
    return tmp_path / "a.bin"


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Write the members again after `change` has had its way with {name: bytes}."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members) or members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def canonical(manifest):
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


def with_manifest(path, change, *, signed=True):
    def edit(members):
        manifest = json.loads(members["manifest.json"])
        manifest = change(manifest) or manifest
        if signed:
            rest = {name: value for name, value in manifest.items() if name != "sha256"}
            manifest["sha256"] = hashlib.sha256(canonical(rest)).hexdigest()
        members["manifest.json"] = canonical(manifest)

    rewritten(path, edit)


def sealed(start):
    """Put a kind, a good checksum and a version behind the first parts of a manifest."""
    start, end = start + b',"kind":"test",', b'"version":2}'
    digest = hashlib.sha256(start + end).hexdigest().encode()
    return start + b'"sha256":"' + digest + b'",' + end


def refused(path, words="is no model", **options):
    with pytest.raises(ModelFileError, match=words):
        read_archive(path, **(FORM | options))


def test_what_goes_in_comes_out(path):
    arrays, data = read_archive(path, **FORM)
    assert data == DATA
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].flags.writeable


def test_equal_contents_are_equal_files(path, tmp_path):
    write_archive(tmp_path / "b.bin", ARRAYS, DATA, **FORM)
    assert path.read_bytes() == (tmp_path / "b.bin").read_bytes()


def test_other_orders_of_bytes_and_memory(tmp_path):
    arrays = {"a": np.asfortranarray(ARRAYS["matrix"]), "b": np.array([1, 2], dtype=">i4")}
    write_archive(tmp_path / "a.bin", arrays, {}, **FORM)
    back, _ = read_archive(tmp_path / "a.bin", **FORM)
    np.testing.assert_array_equal(back["a"], ARRAYS["matrix"])
    np.testing.assert_array_equal(back["b"], [1, 2])


@pytest.mark.parametrize("array", [np.array([None]), np.array(["a"]), np.array([1j])])
def test_other_arrays_are_not_written(tmp_path, array):
    with pytest.raises(TypeError):
        write_archive(tmp_path / "a.bin", {"a": array}, {}, **FORM)
    assert not list(tmp_path.iterdir())


def test_kind_and_version(path):
    refused(path, "not marked as 'other'", kind="other")
    refused(path, "version 2 and this manifoldknn reads up to 1; update", version=1)
    arrays, _ = read_archive(path, kind="test", version=3)
    assert len(arrays) == len(ARRAYS)


def test_size_is_checked_first(path):
    refused(path, "at most", max_bytes=path.stat().st_size - 1)
    read_archive(path, max_bytes=path.stat().st_size, **FORM)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none.bin", **FORM)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", bytes(1000), pickle.dumps([1])])
def test_not_an_archive(tmp_path, content):
    (tmp_path / "a.bin").write_bytes(content)
    refused(tmp_path / "a.bin", "damaged or not a model")


def test_compressed_parts_are_refused(path):
    rewritten(path, lambda m: m, zipfile.ZIP_DEFLATED)
    refused(path, "compressed")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/passwd", "extra.npy", "a/b.npy", "x"])
def test_parts_of_other_names_are_refused(path, name, tmp_path):
    rewritten(path, lambda m: m | {name: b"x"})
    refused(path, "not those that its manifest lists")
    assert {p.name for p in tmp_path.iterdir()} == {"a.bin"}


def test_missing_part(path):
    rewritten(path, lambda m: {k: v for k, v in m.items() if k != "flags.npy"})
    refused(path, "not those that its manifest lists")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_part(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("flags.npy", b"x")
    refused(path, "repeated")


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code from the file was run')",))


def test_pickles_are_not_opened(path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)

    def smuggle(members):
        members["flags.npy"] = buffer.getvalue()

    rewritten(path, smuggle)
    refused(path)

    def declare(manifest):
        manifest["arrays"]["flags"] |= {"dtype": "|O", "shape": [1]}

    with_manifest(path, declare)
    refused(path, "dtype")


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**9, 10**9]}, {"shape": [-1]}, {"shape": "3"}, {"shape": [3.0]},
        {"shape": [True]},
        {"shape": []}, {"shape": [1, 1, 3]}, {"shape": [4]}, {"shape": [1, 3]}, {"dtype": "<f8"},
        {"dtype": "i4,i4"}, {"dtype": "nonsense"}, {"dtype": None}, {"sha256": "0" * 64},
        {"sha256": None}, {"dtype": "|V1"}, {"dtype": "<M8[s]"},
    ],
)  # fmt: skip
def test_manifest_must_describe_the_array(path, change):
    with_manifest(path, lambda m: m["arrays"]["flags"].update(change))
    refused(path)


@pytest.mark.parametrize(
    "manifest",
    [
        [], {}, None, {"kind": "test"}, {"kind": "test", "version": "2", "arrays": {}, "data": {}},
        {"kind": "test", "version": True, "arrays": {}, "data": {}},
        {"kind": "test", "version": 2, "arrays": [], "data": {}},
        {"kind": "test", "version": 2, "arrays": {}, "data": []},
    ],
)  # fmt: skip
def test_other_manifests_are_refused(path, manifest):
    sign = isinstance(manifest, dict)
    text = canonical(manifest)
    if sign:
        manifest |= {"sha256": hashlib.sha256(text).hexdigest()}
    rewritten(path, lambda m: m | {"manifest.json": canonical(manifest)})
    refused(path)


@pytest.mark.parametrize("place", ["data", "arrays"])
def test_the_checksum_covers_the_manifest(path, place):
    def change(manifest):
        if place == "data":
            manifest["data"]["list"][0] = 2
        else:
            manifest["arrays"]["more"] = 1

    with_manifest(path, change, signed=False)
    refused(path, "its manifest was altered: the checksum")


def test_a_manifest_that_is_signed_again_is_read(path):
    with_manifest(path, lambda manifest: manifest["data"].update(list=[]))
    assert read_archive(path, **FORM)[1]["list"] == []


def test_bytes_that_belong_to_no_part(path):
    content = path.read_bytes()
    second = content.index(b"PK\x03\x04", 4)
    directory = content.index(b"PK\x01\x02")
    for at in (0, second, directory, len(content)):
        path.write_bytes(content[:at] + b"#!/bin/sh\n" + content[at:])
        refused(path)
    comment = content[:-2] + (3).to_bytes(2, "little") + b"abc"
    path.write_bytes(comment)
    refused(path, "damaged")
    path.write_bytes(content)
    read_archive(path, **FORM)


def test_deeply_nested_and_infinite_json(path):
    for inner in (b"[" * 100_000, b"NaN", b'"x":'):
        rewritten(path, lambda m, inner=inner: m | {"manifest.json": sealed(b'{"a":' + inner)})
        refused(path)
    rewritten(path, lambda m: m | {"manifest.json": sealed(b'{"data":{"a":NaN}')})
    refused(path, "its manifest holds NaN")


def test_nothing_is_made_of_a_manifest_before_its_checksum_agrees(path, monkeypatch):
    with_manifest(path, lambda manifest: manifest["data"].update(list=[]), signed=False)
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was read"))
    refused(path, "altered")
    rewritten(path, lambda m: m | {"manifest.json": b"{" + b'"a":[[],[]]}'})
    refused(path, "no checksum")


@pytest.mark.parametrize("piece", [b"[],", b"{},", b'"",', b"0,", b"x"])
def test_what_a_manifest_may_cost_follows_from_its_size(path, piece, monkeypatch):
    """With good checksums: lists in lists take twenty times the memory of their text."""
    start = b'{"arrays":{},"data":{"x":['
    for size in (17 << 20, 4 << 20) if piece != b"x" else (17 << 20,):
        text = sealed(start + piece * (size // len(piece)) + b"0]}")
        rewritten(path, lambda _, text=text: {"manifest.json": text})
        with monkeypatch.context() as patch:
            patch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was read"))
            refused(path, "too large")


def test_what_could_not_be_read_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="too many names"):
        write_archive(tmp_path / "a.bin", {}, {"x": [0] * (1 << 20)}, **FORM)
    assert not list(tmp_path.iterdir())


def test_a_long_directory_is_not_read(path, monkeypatch):
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(400):
            archive.writestr(f"part{number}", b"")
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_, **__: pytest.fail("it was read"))
    refused(path, "too many parts")


def test_the_directory_of_a_large_file(path, monkeypatch):
    """As of one over 4 GB: its end is written in another way, and is checked as well."""
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    write_archive(path, ARRAYS, DATA, **FORM)
    content = path.read_bytes()
    end = content.index(b"PK\x06\x06")
    assert read_archive(path, **FORM)[1] == DATA
    path.write_bytes(content[: end + 40] + (2**40).to_bytes(8, "little") + content[end + 48 :])
    refused(path, "too many parts")
    path.write_bytes(content[:end] + bytes(9) + content[end:])
    refused(path, "damaged")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_only_ordinary_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        refused(place, "no ordinary file")


def test_size_that_the_directory_claims(path):
    """A directory entry that claims terabytes allocates nothing."""
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    claimed = content[: entry + 20] + (2**31).to_bytes(4, "little") * 2 + content[entry + 28 :]
    path.write_bytes(claimed)
    refused(path)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_gives_one_kind_of_error(tmp_path_factory, data):
    """Truncated, flipped or overwritten anywhere: the true contents, or ModelFileError."""
    path = tmp_path_factory.mktemp("fuzz") / "a.bin"
    write_archive(path, ARRAYS, DATA, **FORM)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["truncate", "flip", "overwrite", "insert"])):
        case "truncate":
            content = content[:at]
        case "flip":
            content[at] ^= data.draw(st.integers(1, 255))
        case "overwrite":
            piece = data.draw(st.binary(min_size=1, max_size=40))
            content[at : at + len(piece)] = piece
        case "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=40))
    path.write_bytes(content)
    try:
        arrays, found = read_archive(path, **FORM)
    except ModelFileError:
        pass
    else:  # the damage hit nothing that counts, such as a date
        assert found == DATA
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
