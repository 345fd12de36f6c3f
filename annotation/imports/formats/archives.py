"""What holds for every zip archive that is read, whatever lies in it."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO

from django.utils.translation import gettext_noop

from annotation.imports.faults import fault
from annotation.imports.formats.base import check_row_count
from annotation.imports.limits import MOST_FILES, most_unpacked, unpacks_to_too_much, uploaded_bytes

NO_CONTENT = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini"})
ARCHIVES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".zst")
TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".xlsb", ".xls", ".ods")
TEXTS = (".txt", ".text", ".md")
# What is said about a data set, beside it.
ABOUT = ("readme", "license", "licence", "changelog", "citation")
ENCRYPTED = 0x1
# What reading raises where a place, a length or what is compressed is not as it was written.
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
PART_DAMAGED = gettext_noop("This part of the archive is damaged (%(error)s).")
_ENTRY = b"PK\x01\x02"
_BLOCK = 1024**2
_ENDS_OF_64 = 56 + 20  # bytes between the list and the end of a large archive


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """Raises InputError where it is damaged, encrypted, or unpacks to too much by what it says itself. Where
    that is forged, the module `zipfile` gives no byte more of an entry than the archive says.
    """
    count = _listed(file)
    check_row_count(count, "file")
    if count > MOST_FILES:
        raise fault(gettext_noop("The file is larger than this server accepts. Split it."), where="file")
    try:
        archive = zipfile.ZipFile(file)
        if not all(entry.filename and entry.header_offset >= 0 for entry in archive.infolist()):
            raise ValueError("a file in it has no name, or begins before the archive does")
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise fault(
            gettext_noop("The zip archive is damaged and cannot be read (%(error)s)."),
            where="file",
            error=error,
        ) from None
    entries = archive.infolist()
    if any(entry.flag_bits & ENCRYPTED for entry in entries):
        raise fault(gettext_noop("The zip archive is encrypted. Make one without a password."), where="file")
    unpacked = sum(entry.file_size for entry in entries)
    size = uploaded_bytes(file)
    if unpacked > most_unpacked(size):
        raise unpacks_to_too_much(size, unpacked, "file")
    return archive


@contextmanager
def file_in(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Iterator[IO[bytes]]:
    """A file of the archive, for as long as it is read. Raises InputError where it is damaged."""
    try:
        with archive.open(info) as file:
            yield file
    except DAMAGED as error:
        raise fault(PART_DAMAGED, where=where, error=error) from None
    except OSError as error:
        if error.errno is not None:  # bz2 gives none
            raise
        raise fault(PART_DAMAGED, where=where, error=error) from None


def is_archive(path: str) -> bool:
    """Whether an entry is, by its name, an archive of its own, which nobody opens."""
    return path.lower().endswith(ARCHIVES)


def _listed(file: IO[bytes]) -> int:
    """How many files the archive's list has, before an object is made of each. What the archive says of their
    number binds nobody, so that they are counted where `zipfile` will look for them; 0 for no archive.
    """
    try:
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    except (zipfile.BadZipFile, OSError):
        return 0
    if not end:
        return 0
    size, place = end[zipfile._ECD_SIZE], end[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    file.seek(max(place - size - _ENDS_OF_64, 0))
    count, left, before = 0, min(size, place) + _ENDS_OF_64, b""
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        left -= len(block)
        count += (before + block).count(_ENTRY)
        before = block[1 - len(_ENTRY) :]
    return count


def content_of(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files by their path in the archive, without what operating systems put there."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        path = path_of(info)
        parts = PurePosixPath(path).parts
        if not info.is_dir() and parts and not any(map(is_no_content, parts)):
            found.setdefault(path, info)
    return found


def tables_in(archive: zipfile.ZipFile) -> list[str]:
    return [path for path in content_of(archive) if path.lower().endswith(TABLES)]


def is_text_item(path: str) -> bool:
    """Whether it is a text that becomes an item."""
    return path.lower().endswith(TEXTS) and not is_about(path)


def is_about(path: str) -> bool:
    return PurePosixPath(path).stem.lower().startswith(ABOUT)


def is_no_content(part: str) -> bool:
    return part in NO_CONTENT or (part.startswith(".") and part not in (".", ".."))


def path_of(info: zipfile.ZipInfo) -> str:
    """As the archive names it. It tells files apart and is shown; it never becomes a path of ours."""
    return info.filename.replace("\\", "/").removeprefix("./")
