"""Folders that others hand over: deliveries given to hypac-verify, backups given to `restore`."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from annotation.errors import InputError
from hypac_site.backup.manifest import FORMAT, INDEX, Manifest, entries
from hypac_verify import command
from hypac_verify.reading import UnusableError
from testbed.fuzz import corpus
from testbed.fuzz.mutations import files_in, with_other_files, zipped
from testbed.fuzz.target import Target


@contextmanager
def folder_of(data: bytes) -> Iterator[Path]:
    """The files of an archive in a folder. Only those that lie at its top."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in files_in(data).items():
            if "/" not in path and "\0" not in path and path not in (".", "..") and len(path.encode()) < 200:
                (folder / path).write_bytes(content)
        yield folder


def verified(data: bytes) -> None:
    with folder_of(data) as folder:
        report, checked, _found = command.check([folder])
        command.told(report, checked)
        assert command.code_of(report) in (0, 1, 3)


def restored(data: bytes) -> None:
    """What `restore` reads of a backup before it takes up anything of it."""
    with folder_of(data) as folder:
        Path(Manifest.read(folder).database)
        for entry in entries(folder) if (folder / INDEX).exists() else ():
            assert ".." not in Path(entry.name).parts


def _backup() -> list[bytes]:
    listed = corpus.lines(
        {"name": "projects/1/ab/cd", "size": 3, "sha256": "ab" * 32},
        {"name": "x", "size": 0, "sha256": "00" * 32},
    )
    told = {
        "format": FORMAT,
        "created_at": "2026-03-01T00:00:00+00:00",
        "vendor": "sqlite",
        "database": "database.sqlite3",
        "database_sha256": "ab" * 32,
        "migrations": [["annotation", "0001_initial"]],
        "files": 2,
        "bytes": 3,
        "index_sha256": "ab" * 32,
        "missing": [],
        "key_check": "",
    }
    return [zipped({"manifest.json": json.dumps(told).encode(), "files.jsonl": listed})]


TARGETS = [
    Target(
        "verify",
        verified,
        corpus.published,
        (UnusableError,),
        mutate=with_other_files,
        seconds=8.0,
        runs=4,
        guided=False,
    ),
    Target("backup", restored, _backup, (InputError,), mutate=with_other_files),
]
