"""Text files that come compressed by gzip, read as if they had not been."""

import gzip
import io
import zlib
from typing import IO

from django.utils.translation import gettext as _

from annotation.errors import InputError

MAGIC = b"\x1f\x8b"
# Text becomes some ten times smaller, text that repeats itself a hundred times.
MAX_RATIO = 200
ALWAYS_ALLOWED_BYTES = 10 * 1024**2
BLOCK = 256 * 1024


def is_gzipped(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(len(MAGIC)) == MAGIC


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The file from its start, or what is compressed in it.

    Reading from it raises InputError where it is damaged, or unpacks to more than MAX_RATIO times its size.
    """
    gzipped = is_gzipped(file)
    file.seek(0)
    return io.BufferedReader(_Unpacked(file), BLOCK) if gzipped else file


class _Unpacked(io.RawIOBase):
    """It does not close what it reads from, which is the caller's."""

    def __init__(self, packed: IO[bytes]) -> None:
        size = packed.seek(0, 2)
        packed.seek(0)
        self._most = max(MAX_RATIO * size, ALWAYS_ALLOWED_BYTES)
        self._file = gzip.GzipFile(fileobj=packed, mode="rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._file.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            words = _("The compressed file is damaged or cut off (%(error)s).") % {"error": error}
            raise InputError(words, where="file") from None
        if self._file.tell() > self._most:
            words = _(
                "The file unpacks to more than %(max_ratio)s times its size; it is not read on. Unpack it "
                "first."
            )
            raise InputError(words % {"max_ratio": MAX_RATIO}, where="file")
        buffer[: len(content)] = content
        return len(content)
