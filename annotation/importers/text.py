"""Lines of UTF-8 text, with their numbers."""

from typing import IO

from django.conf import settings

from annotation.errors import InputError

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class TextLines:
    """Iterates over the lines of a file, ends of lines included.

    Raises InputError with the line's number where it is no UTF-8, holds a NUL, or is too long. `number` is
    that of the line that came last, from 1. Whoever reads rows of several lines calls `new_row` after each,
    so that a quote that is never closed cannot fill the memory.
    """

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        self._file = file
        self._row_bytes = 0
        # Four bytes are the longest UTF-8 character; a row has more than one cell.
        self._max_row_bytes = 8 * settings.HYPAC_MAX_CELL_CHARACTERS + 64 * 1024
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
                f"This row is longer than {self._max_row_bytes:,} bytes. Is a quotation mark before it never "
                "closed? Otherwise raise HYPAC_MAX_CELL_CHARACTERS."
            )
        if self.number == 1:
            if raw.startswith(UTF16_BOMS):
                raise self.error("The file is UTF-16. Save it as UTF-8 and import it again.")
            raw = raw.removeprefix(UTF8_BOM)
        if b"\0" in raw:
            raise self.error("There is a NUL character, which no text has. Is this a text file in UTF-8?")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(
                f"This is not UTF-8: byte 0x{raw[error.start]:02X} at place {error.start + 1} of the line. "
                "Save the file as UTF-8 and import it again."
            ) from None

    def new_row(self) -> None:
        self._row_bytes = 0

    def error(self, message: str) -> InputError:
        return InputError(message, where=f"line {max(self.number, 1)}")
