"""The bytes of a text file as plain UTF-8, and back: its encoding and its compression.

Text in UTF-8 is read where it lies. Anything else is written once as UTF-8 into a temporary file,
which is read instead. What is written goes the way back, so that the bytes stay what they were.
"""

from __future__ import annotations

import codecs
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from manifoldknn.base.atomic import temporary_folder
from manifoldknn.tables.table import TableError, byte_line

__all__ = ["Source"]

_CHUNK = 1 << 20  # bytes
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by what the file begins with
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SAID = {"utf-8": "UTF-8", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


class Source:
    """A text file in some encoding, perhaps packed.

    `plain` is where its text lies in UTF-8. By default UTF-16 is known by its mark or its zero
    bytes, and what is no UTF-8 is Windows-1252, in which nearly all bytes are letters.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = self.plain = path
        with path.open("rb") as file:
            head = file.read(4)
        if head == b"PK\x03\x04":
            raise TableError(f"{path.name} is no text but a workbook or archive: say --format xlsx")
        self.packing = next((p for mark, p in _PACKED.items() if head.startswith(mark)), "")
        self.encoding = "utf-8"
        try:
            *others, last = self._candidates(encoding)
            for self.encoding in others:
                with suppress(UnicodeDecodeError):
                    return self._read()
            self.encoding = last
            self._read()
        except UnicodeDecodeError as error:
            line = byte_line(self._chunks(), self.encoding)
            raise TableError(
                f"line {line} of {path.name} is not text in {self.said} "
                f"(byte {error.object[error.start]:#04x}): name its --encoding, such as latin-1, "
                "or save it as UTF-8"
            ) from None
        except (pa.ArrowException, OSError) as error:
            if not self.packing or isinstance(error, FileNotFoundError | PermissionError):
                raise
            raise TableError(
                f"{path.name} cannot be unpacked ({self.packing}: {error}): pack it again"
            ) from None

    @property
    def said(self) -> str:
        """The encoding as people call it."""
        return _SAID.get(self.encoding, self.encoding)

    @contextmanager
    def written(self, file: IO[bytes]) -> Iterator[Any]:
        """Write text in UTF-8 to what the block is given: it arrives as this file has it."""
        if self.plain == self.path:
            yield file
        elif not self.packing:
            yield _Encoded(file, self)
        else:
            with pa.CompressedOutputStream(pa.PythonFile(_Open(file), "w"), self.packing) as packed:
                yield _Encoded(packed, self)

    def _candidates(self, encoding: str | None) -> list[str]:
        """Return encodings to try; the last must do."""
        with self._unpacked() as file:
            head = file.read(_CHUNK)
        marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")
        if encoding is not None:
            try:
                "".encode(encoding)
                name = codecs.lookup(encoding).name
            except LookupError:
                raise TableError(
                    f"--encoding {encoding} is not known: utf-8, utf-16, cp1252 and latin-1 are"
                ) from None
            return [{"utf-16": marked or "utf-16-le", "utf-8-sig": "utf-8"}.get(name, name)]
        zeros = head[::2].count(0), head[1::2].count(0)
        if not marked and max(zeros) > len(head) // 4 and min(zeros) < max(zeros) // 4:
            marked = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        if not marked and max(zeros):
            raise TableError(f"{self.path.name} is no text, by its zero bytes: name its --format")
        return [marked] if marked else ["utf-8", "cp1252"]

    def _read(self) -> None:
        """Go through the file; write it down as UTF-8, unless it is."""
        if not self.packing and self.encoding == "utf-8":
            decoder = codecs.getincrementaldecoder("utf-8")()
            for chunk in self._chunks():
                if not chunk or not chunk.isascii() or decoder.getstate()[0]:
                    decoder.decode(chunk, not chunk)
            return
        folder = ExitStack()
        weakref.finalize(self, folder.close)
        plain = folder.enter_context(temporary_folder()) / self.path.name
        back, before, after = _Encoded(None, self), blake2b(), blake2b()
        decode = codecs.getincrementaldecoder(self.encoding)().decode
        with plain.open("wb") as file:
            for chunk in self._chunks():
                before.update(chunk)
                text = decode(chunk, not chunk)
                after.update(back.encode(text))
                file.write(text.encode())
        if before.digest() != after.digest():
            raise TableError(
                f"{self.path.name} would not come back byte for byte in {self.said}: save it as "
                "UTF-8"
            )
        self.plain = plain

    def _chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the text, and an empty chunk last."""
        with self._unpacked() as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        yield b""

    def _unpacked(self) -> Any:
        if not self.packing:
            return self.path.open("rb")
        return pa.input_stream(pa.OSFile(str(self.path)), compression=self.packing)


class _Encoded:
    """A file that takes UTF-8 and is written in another encoding."""

    def __init__(self, file: Any, source: Source) -> None:
        self._file, self._source = file, source
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._encoder = codecs.getincrementalencoder(source.encoding)()

    def write(self, data: bytes) -> None:
        self._file.write(self.encode(self._decode(data)))

    def encode(self, text: str) -> bytes:
        try:
            return self._encoder.encode(text)
        except UnicodeEncodeError as error:
            raise TableError(
                f"{text[error.start : error.end]!r} cannot be written in {self._source.said}, the "
                "encoding of the file: save that as UTF-8 first"
            ) from None


class _Open:
    """A file that stays open when Arrow closes it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write, self.flush = file.write, file.flush

    def close(self) -> None:
        """Leave that to whoever opened it."""
