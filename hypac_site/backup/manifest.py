"""What a backup says about itself."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from annotation.errors import InputError

FORMAT = 1
NAME = "manifest.json"
INDEX = "files.jsonl"
FILES = "files"
BLOCK = 1024**2


@dataclass(frozen=True)
class Manifest:
    """`migrations` as [app, name]; `index_sha256` is of the list of files; `key_check` tells whether the keys
    of a site open what is stored encrypted."""

    format: int
    created_at: str
    vendor: str
    database: str
    database_sha256: str
    migrations: list[list[str]]
    files: int
    bytes: int
    index_sha256: str
    missing: list[str]
    key_check: str

    def write(self, folder: Path) -> None:
        (folder / NAME).write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Raises InputError where the folder is no whole backup of a format that this version reads."""
        if not is_a_file(folder / NAME):
            raise InputError("This is no backup, or one that was not finished: it has no manifest.json.")
        try:
            fields = json.loads((folder / NAME).read_text())
        except (ValueError, RecursionError):
            raise InputError("manifest.json cannot be read.") from None
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise InputError("This backup is of another version of the format.")
        try:
            found = cls(**fields)
        except TypeError:
            raise InputError("manifest.json lacks something.") from None
        pairs = isinstance(found.migrations, list) and all(map(_is_pair, found.migrations))
        texts = (found.vendor, found.database, found.database_sha256, found.index_sha256, found.key_check)
        counts = isinstance(found.files, int) and isinstance(found.bytes, int)
        if not (pairs and counts) or not all(isinstance(text, str) and "\0" not in text for text in texts):
            raise InputError("manifest.json has something of the wrong kind.")
        return found


def _is_pair(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and all(isinstance(text, str) for text in given)


@dataclass(frozen=True)
class Entry:
    """A file by its name in the storage."""

    name: str
    size: int
    sha256: str


def entries(folder: Path) -> Iterator[Entry]:
    """The files of a backup. Raises InputError for a name that leads out of it."""
    with (folder / INDEX).open("rb") as lines:
        for line in lines:
            try:
                entry = Entry(**json.loads(line))
                path = PurePosixPath(entry.name)
            except (ValueError, TypeError, RecursionError):
                raise InputError(f"{INDEX} has a line that names no file.") from None
            if path.is_absolute() or ".." in path.parts or "\0" in entry.name:
                raise InputError("The list of files names a place outside of the storage.", where=entry.name)
            yield entry


def is_a_file(path: Path) -> bool:
    """No link, which may lead anywhere, and no pipe, which is never read to its end."""
    return path.is_file() and not path.is_symlink()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
