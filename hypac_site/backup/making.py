"""Making a backup."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.db import connection

from annotation.errors import HypacError
from annotation.outside import secrets
from hypac_site.backup.databases import MIGRATIONS, NAMED_FILES, database
from hypac_site.backup.manifest import BLOCK, FILES, FORMAT, INDEX, Entry, Manifest, sha256_of

KEY_CHECK = "hypac backup"
# Beside the files that rows name: results of batches that were read in by hand.
OTHER_FOLDERS = ("batches",)
MOST_MISSING = 1000
# LocalFiles or ObjectStore, which can both list what they hold.
_storage: Any = default_storage


def make_backup(target: Path, *, with_files: bool = True) -> Manifest:
    """Write a backup into the new folder `target`, which appears under its name when it is whole.

    The database comes first. A file is written before the row that names it and is never changed, so each
    file that the snapshot names is there to be copied afterwards - unless its project is deleted at that
    moment; what is missing is listed in the manifest.

    Raises HypacError where something has that name, or where the database cannot be read.
    """
    part = target.with_name(f"{target.name}.partial")
    for folder in (target, part):
        if folder.exists():
            raise HypacError(f"{folder} is already there. Choose another name, or remove it first.")
    part.mkdir(parents=True)
    try:
        manifest = _write(part, with_files=with_files)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    part.rename(target)
    return manifest


def _write(part: Path, *, with_files: bool) -> Manifest:
    base = database()
    with tempfile.TemporaryFile("w+") as listed:
        with base.dump(part / base.name) as snapshot:
            migrations = [list(row) for row in snapshot.rows(MIGRATIONS)]
            # Noted, so that the snapshot is not held while terabytes are copied.
            for name, _size, sha256 in snapshot.rows(NAMED_FILES) if with_files else ():
                listed.write(json.dumps([name, sha256]) + "\n")
        listed.seek(0)
        copied = _Copied(part)
        if with_files:
            copied.copy(_wanted(listed))
        copied.close()
    manifest = Manifest(
        format=FORMAT,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        vendor=connection.vendor,
        database=base.name,
        database_sha256=sha256_of(part / base.name),
        migrations=migrations,
        files=copied.files,
        bytes=copied.bytes,
        index_sha256=sha256_of(part / INDEX),
        missing=copied.missing,
        key_check=secrets.encrypt(KEY_CHECK),
    )
    manifest.write(part)
    return manifest


def _wanted(listed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name, SHA-256 or "" where no row knows it), each once."""
    before = ""
    for name, sha256 in map(json.loads, listed):
        if name != before:
            yield name, sha256
        before = name
    for folder in OTHER_FOLDERS:
        for name, _written in _storage.walk(folder):
            yield name, ""


class _Copied:
    """The files of a backup while it is being made."""

    def __init__(self, folder: Path) -> None:
        self.files = self.bytes = 0
        self.missing: list[str] = []
        self._folder = folder / FILES
        self._index = (folder / INDEX).open("w")

    def close(self) -> None:
        self._index.close()

    def copy(self, names: Iterator[tuple[str, str]]) -> None:
        for name, wanted in names:
            try:
                entry = self._one(name)
            except FileNotFoundError:
                entry = None
            if entry is None or (wanted and entry.sha256 != wanted):
                if len(self.missing) < MOST_MISSING:
                    self.missing.append(name)
                continue
            self.files += 1
            self.bytes += entry.size
            self._index.write(json.dumps(entry.__dict__) + "\n")

    def _one(self, name: str) -> Entry:
        digest, size = hashlib.sha256(), 0
        with default_storage.open(name, "rb") as source:
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as copy:
                while block := source.read(BLOCK):
                    digest.update(block)
                    copy.write(block)
                    size += len(block)
        return Entry(name, size, digest.hexdigest())
