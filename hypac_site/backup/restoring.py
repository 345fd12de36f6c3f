"""Putting a backup back."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from annotation.checks import was_made_before_0_3
from annotation.errors import InputError
from annotation.outside import secrets
from hypac_site.backup.databases import database, end_sessions, refuse_unless_empty
from hypac_site.backup.making import KEY_CHECK
from hypac_site.backup.manifest import BLOCK, FILES, INDEX, Entry, Manifest, entries, is_a_file, sha256_of


@dataclass(frozen=True)
class Restored:
    """`behind`: migrations of this version that the backup does not have, so that `migrate` has to run;
    `keys_fit`: whether the keys of this site open what is stored encrypted."""

    manifest: Manifest
    behind: list[str]
    keys_fit: bool


def check_backup(source: Path) -> Restored:
    """Read the whole backup and compare it with what it says of itself; changes nothing.

    Raises InputError where it is damaged, or made by a newer version, or by one before 0.3.
    """
    manifest = Manifest.read(source)
    known = set(MigrationLoader(None).disk_migrations)
    there = {(app, name) for app, name in manifest.migrations}
    if was_made_before_0_3(there):
        raise InputError("The backup was made by HyPAC before 0.3. Put it back with version 0.2.0.")
    if newer := sorted(there - known):
        raise InputError(
            "The backup was made by a newer version of HyPAC, which has "
            f"{', '.join('.'.join(name) for name in newer[:3])}. Put it back with that version."
        )
    for name, sha256 in ((manifest.database, manifest.database_sha256), (INDEX, manifest.index_sha256)):
        path = source / Path(name).name
        if not is_a_file(path) or sha256_of(path) != sha256:
            raise InputError("The backup is damaged: this file is not what it was.", where=name)
    if manifest.vendor == connection.vendor:
        database().refuse_damaged(source / Path(manifest.database).name)
    count = 0
    for entry in entries(source):
        _read(source, entry)
        count += 1
    if count != manifest.files:
        raise InputError("The backup is damaged: its list of files is not whole.", where=INDEX)
    return Restored(
        manifest=manifest,
        behind=[f"{app}.{name}" for app, name in sorted(known - there)],
        keys_fit=_keys_fit(manifest),
    )


def restore_backup(source: Path) -> Restored:
    """Put files and database back into a site whose database is empty. Everybody has to log in again.

    Files first: where it ends in the middle, the database is still empty, and it can be done once more. A
    file that the storage has already stays; one that differs from the backup's is replaced.

    Raises InputError as `check_backup` does, and where the backup is of the other kind of database;
    HypacError where the database is not empty or cannot be written.
    """
    found = check_backup(source)
    if found.manifest.vendor != connection.vendor:
        raise InputError(
            f"The backup is of a {found.manifest.vendor} database, and this site uses {connection.vendor}. "
            "From SQLite to PostgreSQL: put it back on SQLite, then `manage.py move`."
        )
    refuse_unless_empty()
    put_files(source)
    database().restore(source / Path(found.manifest.database).name)
    end_sessions()
    return found


def put_files(source: Path) -> None:
    """Write the files of a backup to the storage, where it has not got them or has something else."""
    for entry in entries(source):
        if not _has(entry):
            with (source / FILES / entry.name).open("rb") as content:
                default_storage.save(entry.name, File(content))


def _has(entry: Entry) -> bool:
    """Whether the storage has the file as it is in the backup. It is read only where its size is right."""
    if not default_storage.exists(entry.name) or default_storage.size(entry.name) != entry.size:
        return False
    digest = hashlib.sha256()
    with default_storage.open(entry.name, "rb") as there:
        while block := there.read(BLOCK):
            digest.update(block)
    return digest.hexdigest() == entry.sha256


def missing_files(restored: Restored) -> Iterator[str]:
    """Names of files that rows of the restored database name and that the storage does not have."""
    from annotation.models import StoredFile

    for name in StoredFile.objects.values_list("storage_name", flat=True).iterator():
        if not default_storage.exists(name):
            yield name


def _read(source: Path, entry: Entry) -> None:
    path = source / FILES / entry.name
    if not is_a_file(path) or path.stat().st_size != entry.size or sha256_of(path) != entry.sha256:
        raise InputError("The backup is damaged: this file is not what it was.", where=entry.name)


def _keys_fit(manifest: Manifest) -> bool:
    try:
        return secrets.decrypt(manifest.key_check) == KEY_CHECK
    except InputError:
        return False
