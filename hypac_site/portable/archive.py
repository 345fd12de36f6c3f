"""A project file that somebody hands in: read as a stream, and believed in nothing."""

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from annotation.errors import InputError
from hypac_site.portable.manifest import MOST_BYTES, NAME, PEOPLE, Manifest, Part
from hypac_site.portable.tables import Model, Row, name_of, travelling
from hypac_site.portable.values import Wrong, row_in

BLOCK = 2**20
# A line is in memory whole, and takes some twenty times its size as it is read.
LONGEST_LINE = 64 * 2**20
# Of stored files. Tables may be packed as tightly as can be, as those of items that are much alike are: they
# are read line by line, whatever their size.
MOST_PACKED = 200
FILE = re.compile(r"files/([0-9a-f]{64})")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def part_of(model: Model) -> str:
    return f"tables/{name_of(model)}.jsonl"


class Archive:
    """`files` has the size of each stored file by its SHA-256."""

    def __init__(self, content: zipfile.ZipFile, size: int) -> None:
        self._content = content
        self._entries = self._look(size)
        self.manifest = Manifest.read(self._small(NAME))
        self._parts = self._known_parts()
        self.files = {
            found[1]: entry.file_size
            for name, entry in self._entries.items()
            if (found := FILE.fullmatch(name)) is not None
        }
        told = (self.manifest.files, self.manifest.files_bytes)
        if told != (len(self.files), sum(self.files.values())):
            raise InputError("It says of another number of stored files than are in it.", where=NAME)

    def rows(self, name: str) -> Iterator[tuple[str, Row]]:
        """Each row of a part, with its place for whoever is told what is wrong with it.

        Raises InputError where the part is not what the manifest says, at its end.
        """
        part, count = self._parts[name], 0
        with self._opened(name) as told:
            lines = io.BufferedReader(told, BLOCK)
            while line := lines.readline(LONGEST_LINE + 1):
                count += 1
                where = f"{name}, line {count}"
                if count > part.rows:
                    raise InputError("It has more rows than the manifest says.", where=name)
                if len(line) > LONGEST_LINE:
                    raise InputError(f"The line is longer than {LONGEST_LINE:,} bytes.", where=where)
                try:
                    yield where, row_in(line)
                except Wrong as wrong:
                    raise InputError(f"The line cannot be read: {wrong}.", where=where) from None
        if (count, told.count, told.sha256.hexdigest()) != (part.rows, part.bytes, part.sha256):
            raise InputError(
                "It is not what the manifest says: the file is damaged, or was changed.", where=name
            )

    @contextmanager
    def file(self, sha256: str) -> Iterator[IO[bytes]]:
        """A stored file that was checked, to be read from any place."""
        with self._content.open(f"files/{sha256}") as content:
            yield content

    def check_file(self, sha256: str) -> None:
        """Raises InputError where its bytes are others than its name says."""
        name = f"files/{sha256}"
        with self._opened(name) as told:
            while told.read(BLOCK):
                pass
        if told.sha256.hexdigest() != sha256:
            raise InputError("It is not what its name says: the file is damaged, or was changed.", where=name)

    @contextmanager
    def _opened(self, name: str) -> Iterator["_Told"]:
        with _told(name), self._content.open(name) as raw:
            yield _Told(raw, self._entries[name].file_size)

    def _small(self, name: str) -> bytes:
        with self._opened(name) as told:
            return told.read(MOST_BYTES)

    def _look(self, size: int) -> dict[str, zipfile.ZipInfo]:
        """The entries by name. Raises InputError for such as no project file has, and for a zip bomb."""
        entries: dict[str, zipfile.ZipInfo] = {}
        known = {NAME, PEOPLE, *map(part_of, travelling())}
        packed = 0
        for entry in self._content.infolist():
            name = entry.filename
            if name in entries:
                raise InputError("It is there twice.", where=name[:200])
            if name not in known and FILE.fullmatch(name) is None:
                raise InputError(f"No project file has an entry of this name: {name[:200]!r}.")
            if entry.flag_bits & 1:
                raise InputError("It is encrypted.", where=name)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError("It is packed in a way that is not read.", where=name)
            if name not in known and entry.file_size > MOST_PACKED * entry.compress_size:
                raise InputError(
                    f"{entry.compress_size:,} bytes of it would become {entry.file_size:,}: it is not read.",
                    where=name,
                )
            packed += entry.compress_size
            entries[name] = entry
        if packed > size:
            raise InputError("Its entries overlap: it is not read.")
        if lacking := sorted(known - entries.keys()):
            if NAME in lacking:
                raise InputError("This is no file of a project: it has no manifest.json.")
            # Of another version it may lack tables: that is said first.
            Manifest.read(self._of(entries, NAME))
            raise InputError("It is not in the file.", where=lacking[0])
        if entries[NAME].file_size > MOST_BYTES:
            raise InputError(f"It is longer than {MOST_BYTES:,} bytes.", where=NAME)
        return entries

    def _of(self, entries: dict[str, zipfile.ZipInfo], name: str) -> bytes:
        with _told(name), self._content.open(name) as raw:
            return _Told(raw, entries[name].file_size).read(MOST_BYTES)

    def _known_parts(self) -> dict[str, Part]:
        parts = {part.name: part for part in self.manifest.parts}
        wanted = {PEOPLE, *map(part_of, travelling())}
        if len(parts) != len(self.manifest.parts) or parts.keys() != wanted:
            raise InputError("It names other tables than a project has.", where=NAME)
        for name, part in parts.items():
            if part.bytes != self._entries[name].file_size:
                raise InputError(
                    "It is not what the manifest says: the file is damaged, or was changed.", where=name
                )
        return parts


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Raises InputError for what is no project file of this version, OSError where it cannot be read."""
    size = path.stat().st_size
    try:
        content = zipfile.ZipFile(path)
    except _DAMAGED:
        raise InputError(
            "This is no file of a project: it is no zip file, or its end is missing.", where=path.name
        ) from None
    with content:
        yield Archive(content, size)


class _Told(io.RawIOBase):
    """What is read, counted and hashed; more than was announced is refused."""

    def __init__(self, raw: IO[bytes], most: int) -> None:
        self.count, self.sha256 = 0, hashlib.sha256()
        self._raw, self._most = raw, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._raw.read(len(buffer))
        self.count += len(block)
        if self.count > self._most:
            raise EOFError
        self.sha256.update(block)
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say of a broken entry what is wrong."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGED:
        raise InputError("It cannot be unpacked: the file is damaged.", where=name) from None
