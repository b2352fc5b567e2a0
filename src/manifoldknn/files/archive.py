"""Arrays and plain data in one file that can be opened without trusting it.

The file is a zip archive of ``manifest.json`` and one ``.npy`` file per array,
stored without compression, so that nothing in it is larger in memory than on
disk. The manifest gives the format's version and, for every array, dtype, shape
and SHA-256; and the SHA-256 of all the rest of itself. Reading checks all of that
*before* memory is allocated, allows nothing that is not named there, not even bytes
before, between or after the parts, and never unpickles.

Checksums tell that a file is what was written. They do not tell who wrote it: anybody can make
new ones. So nothing in a file is trusted, and what one may cost in memory follows from its size.
"""

import hashlib
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.atomic import replaced_file

_MANIFEST = "manifest.json"
_MOST_MANIFEST_BYTES = 1 << 24
_MOST_MARKS = 1 << 20  # of its JSON: how many values there are, of up to a hundred bytes each
_MOST_DIRECTORY_BYTES = 1 << 14
_MOST_HEADER_BYTES = 4096
_MOST_ARRAYS = 100
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_KINDS = "biuf"  # booleans and numbers; text travels in the manifest
_CHUNK = 1 << 22
_LENGTHS_AT, _END_BYTES = 26, 22  # of a local header; of the end of a directory
_LOCATOR_BYTES, _END64_BYTES = 20, 56  # before that, where a file is larger than 4 GB
_SEAL = re.compile(rb',("sha256":"([0-9a-f]{64})",)"version":[0-9]{1,9}}\Z')


class ModelFileError(ValueError):
    """A file is not a model that this version can read, or it was altered."""


def write_archive(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    data: Mapping[str, Any],
    *,
    kind: str,
    version: int,
    force: bool = True,
) -> None:
    """Write arrays of booleans and numbers, and data that JSON can hold, atomically.

    `kind` and `version` say what the file is and which form it has, and are checked on reading.
    """
    listed = {}
    contents: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        if array.dtype.kind not in _KINDS or not _NAME.fullmatch(name):
            raise TypeError(f"cannot write {name!r} of dtype {array.dtype}")
        contents[name] = array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        listed[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(array.data if array.size else b"").hexdigest(),
        }
    manifest = {"kind": kind, "version": version, "arrays": listed, "data": dict(data)}
    digest = hashlib.sha256(_canonical(manifest)).hexdigest()
    text = _canonical(manifest | {"sha256": digest})
    if not _is_short(text):
        raise ValueError("too many names of classes, columns or categories to be written")
    with (
        replaced_file(path, force=force) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(_member(_MANIFEST), text)
        for name, array in contents.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    """Return the one text in which equal manifests are written."""
    return json.dumps(
        manifest, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    ).encode("utf-8", "surrogatepass")


def _is_short(text: bytes) -> bool:
    """Tell whether JSON is of a size that a file may ask memory for."""
    return len(text) <= _MOST_MANIFEST_BYTES and sum(map(text.count, b"[{:,")) <= _MOST_MARKS


def _member(name: str) -> zipfile.ZipInfo:
    """Name a member with a fixed date, so that equal models are equal files."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def read_archive(
    path: str | os.PathLike[str], *, kind: str, version: int, max_bytes: int | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the data that `write_archive` wrote, or raise.

    ModelFileError if anything in the file is not as it must be, or if it is larger than
    `max_bytes`, before anything is read; OSError if it cannot be opened.
    """
    status = Path(path).stat()
    size = status.st_size
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{path} is no ordinary file (a folder, device or pipe): copy it")
    if max_bytes is not None and size > max_bytes:
        raise ModelFileError(
            f"{path} has {size / 1e9:.1f} GB and at most {max_bytes / 1e9:.1f} GB may be loaded: "
            "free memory, or raise max_bytes if you trust the file."
        )
    try:
        with Path(path).open("rb") as file:
            _check_directory(file, size)
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, size)
                _check_no_gaps(file, archive)
                manifest = _manifest(archive, members, kind, version)
                arrays = {
                    name: _array(archive, members[f"{name}.npy"], entry)
                    for name, entry in manifest["arrays"].items()
                }
    except ModelFileError as error:
        raise ModelFileError(f"{path} is no model that can be used: {error}.") from None
    except OSError:
        raise
    except Exception as error:  # zipfile, numpy and json each have their own ways to fail
        raise ModelFileError(
            f"{path} is no model that can be used: it is damaged or not a model file "
            f"({type(error).__name__}). Save the model again."
        ) from None
    return arrays, manifest["data"]


def _check_directory(file: IO[bytes], size: int) -> None:
    """Refuse a list of parts that is long, before zipfile reads all of it."""
    file.seek(max(0, size - _END64_BYTES - _LOCATOR_BYTES - _END_BYTES))
    tail = file.read()
    end, locator = tail[-_END_BYTES:], tail[-_LOCATOR_BYTES - _END_BYTES :]
    n_bytes = int.from_bytes(end[12:16], "little")
    whole = end.startswith(b"PK\x05\x06")
    if locator.startswith(b"PK\x06\x07"):  # the end is the longer one that stands before this
        at, n_bytes = (int.from_bytes(part, "little") for part in (locator[8:16], tail[40:48]))
        whole = whole and tail.startswith(b"PK\x06\x06") and at == size - len(tail)
    if not whole:
        raise ModelFileError("it is damaged or not a model file")
    if n_bytes > _MOST_DIRECTORY_BYTES:
        raise ModelFileError("it has repeated or too many parts")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, none of them compressed, repeated or larger than the file."""
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.filename in members or len(members) > _MOST_ARRAYS:
            raise ModelFileError("it has repeated or too many parts")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise ModelFileError(f"its part {entry.filename[:60]!r} is compressed or encrypted")
        if entry.file_size != entry.compress_size or entry.file_size > size:
            raise ModelFileError(f"its part {entry.filename[:60]!r} claims a size it cannot have")
        members[entry.filename] = entry
    return members


def _check_no_gaps(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Refuse bytes that belong to no part: before, between and after them."""
    at = 0
    for entry in sorted(archive.infolist(), key=lambda entry: entry.header_offset):
        if entry.header_offset != at:
            raise ModelFileError("it has bytes that belong to none of its parts")
        file.seek(at + _LENGTHS_AT)
        name, extra = file.read(2), file.read(2)
        at += _LENGTHS_AT + 4 + int.from_bytes(name, "little") + int.from_bytes(extra, "little")
        at += entry.compress_size
    if at != archive.start_dir:
        raise ModelFileError("it has bytes that belong to none of its parts")


def _manifest(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], kind: str, version: int
) -> dict[str, Any]:
    if _MANIFEST not in members or members[_MANIFEST].file_size > _MOST_MANIFEST_BYTES:
        raise ModelFileError("it has no manifest, or one that is too large")
    text = archive.read(members[_MANIFEST])
    seal = _SEAL.search(text, max(0, len(text) - 200))
    if seal is None:
        raise ModelFileError("its manifest has no checksum")
    # Nothing is made of a text that is not what was written.
    digest = hashlib.sha256(text[: seal.start(1)] + text[seal.end(1) :]).hexdigest()
    if digest.encode() != seal[2]:
        raise ModelFileError("its manifest was altered: the checksum does not agree")
    if not _is_short(text):
        raise ModelFileError("its manifest is too large")
    manifest = json.loads(text, parse_constant=_no_constant)
    if not isinstance(manifest, dict) or manifest.get("kind") != kind:
        raise ModelFileError(f"it is not marked as {kind!r}")
    found = manifest.get("version")
    if type(found) is not int or found < 1:
        raise ModelFileError("its version is not a number")
    if found > version:
        raise ModelFileError(
            f"its form has version {found} and this manifoldknn reads up to {version}; update "
            "manifoldknn"
        )
    arrays, data = manifest.get("arrays"), manifest.get("data")
    if not isinstance(arrays, dict) or not isinstance(data, dict):
        raise ModelFileError("its manifest lists no arrays")
    if {f"{name}.npy" for name in arrays} | {_MANIFEST} != set(members):
        raise ModelFileError("its parts are not those that its manifest lists")
    return manifest


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its manifest holds {name}")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, listed: Any) -> NDArray[Any]:
    """Read one array after its size, dtype and shape have been found to agree."""
    name = member.filename[:60]
    shape, dtype = _declared(listed)
    n_bytes = math.prod(shape) * dtype.itemsize
    if not 0 < member.file_size - n_bytes <= _MOST_HEADER_BYTES:
        raise ModelFileError(f"its part {name!r} has not the size that its manifest states")
    with archive.open(member) as stream:
        _check_header(stream, shape, dtype, name)
        array = np.empty(shape, dtype=dtype)
        _fill(stream, array, name)
    if hashlib.sha256(array.data if array.size else b"").hexdigest() != listed["sha256"]:
        raise ModelFileError(f"its part {name!r} was altered: the checksum does not agree")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _declared(listed: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    shape = listed["shape"]
    shaped = isinstance(shape, list) and 0 < len(shape) <= 2
    if not shaped or any(type(length) is not int or length < 0 for length in shape):
        raise ModelFileError("its manifest states an impossible shape")
    dtype = np.dtype(str(listed["dtype"]))
    if dtype.kind not in _KINDS or dtype.hasobject or dtype.names is not None:
        raise ModelFileError(f"its manifest states the dtype {str(dtype)[:40]}")
    return tuple(shape), dtype


def _check_header(
    stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any], name: str
) -> None:
    """Read the header of an .npy stream, which must say what the manifest says."""
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ModelFileError(f"its part {name!r} has a header of another kind")
    length = stream.read(2)
    header = stream.read(min(int.from_bytes(length, "little"), _MOST_HEADER_BYTES))
    found = np.lib.format.read_array_header_1_0(io.BytesIO(length + header))
    if found != (shape, False, dtype):
        raise ModelFileError(f"its part {name!r} is not what its manifest states")


def _fill(stream: IO[bytes], array: NDArray[Any], name: str) -> None:
    target: Any = array.reshape(-1).view(np.uint8).data if array.size else b""
    at = 0
    while at < len(target):
        piece = stream.read(min(_CHUNK, len(target) - at))
        if not piece:
            raise ModelFileError(f"its part {name!r} ends too early")
        target[at : at + len(piece)] = piece
        at += len(piece)
    if stream.read(1):
        raise ModelFileError(f"its part {name!r} is longer than its manifest states")
