"""Lines of text, with their numbers: UTF-8, or UTF-16 with its mark at the start;
compressed by gzip, or not.
"""

import codecs
import gzip
import io
import re
import zipfile
import zlib
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.allowance import PassThrough
from annotation.imports.faults import fault
from annotation.imports.limits import most_unpacked, unpacks_to_too_much, uploaded_bytes

MAGIC = b"\x1f\x8b"
UNPACKED_BLOCK = 256 * 1024


def is_gzipped(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(len(MAGIC)) == MAGIC


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The file from its start, or what is compressed in it.

    Reading from it raises InputError where it is damaged, or unpacks to more than it may.
    """
    gzipped = is_gzipped(file)
    if gzipped and isinstance(file, zipfile.ZipExtFile):
        raise fault(gettext_noop("It is compressed twice. Unpack it first."), where=file.name or "file")
    file.seek(0)
    return io.BufferedReader(_Unpacked(file), UNPACKED_BLOCK) if gzipped else file


class _Unpacked(PassThrough):
    def __init__(self, packed: IO[bytes]) -> None:
        packed.seek(0)
        super().__init__(gzip.GzipFile(fileobj=packed, mode="rb"))
        self._size = uploaded_bytes(packed)
        self._most = most_unpacked(self._size)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._file.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            words = gettext_noop("The compressed file is damaged or cut off (%(error)s).")
            raise fault(words, where="file", error=error) from None
        if self._file.tell() > self._most:
            raise unpacks_to_too_much(self._size, self._file.tell(), "file")
        buffer[: len(content)] = content
        return len(content)


UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLOCK = 64 * 1024
# Of a table, a cell in quotation marks with what stands before it, in which they are doubled.
_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*+(?:"|$)')


def longest_row() -> int:
    """Bytes of the longest row that is read: four are the longest UTF-8 character, and a row has more than
    one cell.
    """
    return int(8 * settings.HYPAC_MAX_CELL_CHARACTERS + 64 * 1024)


def without_marks(file: IO[bytes]) -> IO[bytes]:
    """The file from its start, unpacked, as UTF-8 without a byte order mark."""
    file = unpacked(file)
    mark = file.read(3)
    if mark.startswith(UTF16_BOMS):
        file.seek(0)
        return as_utf8(file, "utf-16")
    if mark != UTF8_BOM:
        file.seek(0)
    return file


NOT_UTF8 = gettext_noop(
    "This is not UTF-8: byte 0x%(raw)s at place %(start)s of the line. Import the file again and say its "
    "encoding, or save it as UTF-8."
)


class TextLines:
    """Iterates over the lines of a file, ends of lines included.

    Raises InputError with the line's number where it is no text, holds a NUL, or is too long. `number` is
    that of the line that came last, from 1. Whoever reads rows of several lines calls `new_row` after each,
    so that a quote that is never closed cannot fill the memory.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = without_marks(file)
        self._row_bytes = 0
        self._max_row_bytes = longest_row()
        self.number = 0

    def __iter__(self) -> "TextLines":
        return self

    def __next__(self) -> str:
        raw = self._file.readline(self._max_row_bytes + 1)
        if not raw:
            raise StopIteration
        self.number += 1
        self._row_bytes += len(raw)
        if self._row_bytes > self._max_row_bytes:
            raise self.error(
                gettext_noop(
                    "This row is longer than %(max_row_bytes)s bytes. Is a quotation mark before it "
                    "never closed? Otherwise raise HYPAC_MAX_CELL_CHARACTERS."
                ),
                max_row_bytes=f"{self._max_row_bytes:,}",
            )
        if b"\0" in raw:
            raise self.error(
                gettext_noop("There is a NUL character, which no text has. Is this a text file in UTF-8?")
            )
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(
                NOT_UTF8,
                raw=f"{raw[error.start]:02X}",
                start=error.start + 1,
            ) from None

    def new_row(self) -> None:
        self._row_bytes = 0

    def error(self, words: str, **params: Any) -> InputError:
        """As `fault`, in this line."""
        return fault(words, where=f"line {max(self.number, 1)}", **params)


def outside_quotes(line: str) -> str:
    """A line of a table without the cells in quotation marks, and without one that has no end on it."""
    return _QUOTED.sub("", line)


def head_of(file: IO[bytes], size: int) -> bytes:
    """The first bytes of a file; of one in UTF-16 as UTF-8, so that both are looked at in the same way."""
    file.seek(0)
    head = file.read(size)
    if not head.startswith(UTF16_BOMS):
        return head
    return codecs.getincrementaldecoder("utf-16")(errors="replace").decode(head).encode()


def as_utf8(file: IO[bytes], codec: str) -> IO[bytes]:
    """A text in another encoding as UTF-8. Reading from it raises InputError where it is not in that one."""
    return io.BufferedReader(_AsUtf8(file, codec), BLOCK)


class _AsUtf8(io.RawIOBase):
    """A file in another encoding, which goes on behind where it stands, as UTF-8.

    In UTF-16 the byte of a line's end is part of other characters, too, so that lines cannot be read from it.
    """

    def __init__(self, file: IO[bytes], codec: str) -> None:
        self._file = file
        self._codec = codec
        self._decoder = codecs.getincrementaldecoder(codec)()
        self._ready = b""
        self._lines = 1
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        """To its start alone, or to where it is."""
        if place or whence == io.SEEK_END:
            raise io.UnsupportedOperation
        if whence == io.SEEK_SET:
            self._file.seek(0)
            self._decoder.reset()
            self._ready, self._lines, self._place = b"", 1, 0
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            block = self._file.read(BLOCK)
            self._ready = self._decoded(block)
            if not block:
                break
        content, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)

    def _decoded(self, block: bytes) -> bytes:
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._codec, errors="ignore")
            words = (
                gettext_noop(
                    "The file begins as UTF-16, and this is not (%(reason)s). Save the file as UTF-8 "
                    "and import it again."
                )
                if self._codec == "utf-16"
                else gettext_noop(
                    "This is not %(encoding)s: byte 0x%(raw)s stands for nothing there. Choose another "
                    "encoding."
                )
            )
            raise fault(
                words,
                where=f"line {self._lines + before.count(chr(10))}",
                reason=error.reason,
                encoding=self._codec,
                raw=f"{error.object[error.start]:02X}",
            ) from None
        self._lines += text.count("\n")
        return text.encode()
