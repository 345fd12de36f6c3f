"""Text files that come compressed by gzip, read as if they had not been."""

import gzip
import io
import zipfile
import zlib
from typing import IO

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.imports.budget import PassThrough
from annotation.imports.limits import most_unpacked, unpacks_to_too_much, uploaded_bytes

MAGIC = b"\x1f\x8b"
BLOCK = 256 * 1024


def is_gzipped(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(len(MAGIC)) == MAGIC


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The file from its start, or what is compressed in it.

    Reading from it raises InputError where it is damaged, or unpacks to more than it may.
    """
    gzipped = is_gzipped(file)
    if gzipped and isinstance(file, zipfile.ZipExtFile):
        raise InputError(_("It is compressed twice. Unpack it first."), where=file.name or "file")
    file.seek(0)
    return io.BufferedReader(_Unpacked(file), BLOCK) if gzipped else file


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
            words = _("The compressed file is damaged or cut off (%(error)s).") % {"error": error}
            raise InputError(words, where="file") from None
        if self._file.tell() > self._most:
            raise unpacks_to_too_much(self._size, self._file.tell(), "file")
        buffer[: len(content)] = content
        return len(content)
