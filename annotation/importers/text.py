"""Lines of text, with their numbers: UTF-8, or UTF-16 with its mark at the start."""

import codecs
import tempfile
from typing import IO

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.gzipped import unpacked

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLOCK = 64 * 1024
IN_MEMORY = 8 * 1024**2


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
        return _as_utf8(file)
    if mark != UTF8_BOM:
        file.seek(0)
    return file


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
                _(
                    "This row is longer than %(max_row_bytes)s bytes. Is a quotation mark before it "
                    "never closed? Otherwise raise HYPAC_MAX_CELL_CHARACTERS."
                )
                % {"max_row_bytes": f"{self._max_row_bytes:,}"}
            )
        if b"\0" in raw:
            raise self.error(_("There is a NUL character, which no text has. Is this a text file in UTF-8?"))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(
                _(
                    "This is not UTF-8: byte 0x%(raw)s at place %(start)s of the line. Save the file "
                    "as UTF-8 and import it again."
                )
                % {"raw": f"{raw[error.start]:02X}", "start": error.start + 1}
            ) from None

    def new_row(self) -> None:
        self._row_bytes = 0

    def error(self, message: str) -> InputError:
        return InputError(message, where=f"line {max(self.number, 1)}")


def head_of(file: IO[bytes], size: int) -> bytes:
    """The first bytes of a file; of one in UTF-16 as UTF-8, so that both are looked at in the same way."""
    file.seek(0)
    head = file.read(size)
    if not head.startswith(UTF16_BOMS):
        return head
    return codecs.getincrementaldecoder("utf-16")(errors="replace").decode(head).encode()


def _as_utf8(file: IO[bytes]) -> IO[bytes]:
    """A copy of a file in UTF-16, in a temporary file that goes away with the reader.

    In UTF-16 the byte of a line's end is part of other characters, too, so that lines cannot be read from it.
    """
    decoder = codecs.getincrementaldecoder("utf-16")()
    copy: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the reader's
    lines = 1
    while True:
        block = file.read(BLOCK)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            lines += block[: error.start].decode("utf-16", errors="ignore").count("\n")
            raise InputError(
                _(
                    "The file begins as UTF-16, and this is not (%(reason)s). Save the file as UTF-8 "
                    "and import it again."
                )
                % {"reason": error.reason},
                where=f"line {lines}",
            ) from None
        lines += text.count("\n")
        copy.write(text.encode())
        if not block:
            copy.seek(0)
            return copy
