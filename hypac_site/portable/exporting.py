"""A project written to a file, as it is at one moment, while people and workers go on."""

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import default_storage

from annotation.common import audit
from annotation.common.snapshot import in_snapshot
from annotation.errors import ConflictError, HypacError
from annotation.models import Project, StoredFile, User
from annotation.projects.lifecycle import refuse_unfinished_jobs
from hypac_site.portable.ids import NOWHERE, rewritten
from hypac_site.portable.manifest import FORMAT, NAME, PEOPLE, VERSION, Manifest, Part, migrations
from hypac_site.portable.maps import AsItIs
from hypac_site.portable.tables import (
    STAYS_BEHIND,
    Model,
    Row,
    cleaned,
    fields_of,
    is_person,
    name_of,
    rows_of,
    travelling,
)
from hypac_site.portable.values import Wrong, line_of, written
from hypac_site.version import version

AT_ONCE = 2000
LINES = 256 * 2**10
BLOCK = 2**20
MOST_MISSING = 1000
# Of the stored files none is packed: most are images, or large.
PACKED, AS_IT_IS = zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED


@dataclass(frozen=True)
class _Begins:
    part: str


@dataclass(frozen=True)
class _Lines:
    content: bytes
    rows: int


@dataclass(frozen=True)
class _Named:
    """A stored file that a row names."""

    sha256: str
    storage_name: str


@dataclass(frozen=True)
class _LeftOut:
    counts: dict[str, int]


_Piece = _Begins | _Lines | _Named | _LeftOut


def export_project(*, slug: str, target: Path, actor: User | None = None) -> Manifest:
    """Write the project into the new file `target`, which appears under its name when it is whole.

    Rows are read from one snapshot, the stored files after it, which never change. Raises HypacError where
    there is no such project, or something has the file's name; ConflictError while a job is unfinished.
    """
    project = Project.objects.filter(slug=slug, deleting_at__isnull=True).first()
    if project is None:
        raise HypacError(f"There is no project {slug!r}.")
    part = target.with_name(f"{target.name}.partial")
    for path in (target, part):
        if path.exists():
            raise HypacError(f"{path} is already there. Choose another name, or remove it first.")
    try:
        manifest = _write(part, project)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.rename(target)
    audit.record(
        project=project,
        actor=actor,
        action="project.exported",
        target=f"project:{project.slug}"[:120],
        data={"files": manifest.files},
    )
    return manifest


def _write(path: Path, project: Project) -> Manifest:
    with (
        zipfile.ZipFile(path, "x", compression=PACKED, allowZip64=True) as archive,
        tempfile.TemporaryFile("w+") as named,
    ):
        left_out: dict[str, int] = {}
        with closing(_Parts(archive)) as parts, in_snapshot(lambda: _pieces(project.pk)) as pieces:
            for piece in pieces:
                match piece:
                    case _Begins():
                        parts.begin(piece.part)
                    case _Lines():
                        parts.add(piece)
                    case _Named():
                        named.write(json.dumps([piece.sha256, piece.storage_name]) + "\n")
                    case _LeftOut():
                        left_out = piece.counts
            parts.end()
        # Not before the end of the snapshot: there may be terabytes.
        named.seek(0)
        files = _Files(archive)
        for sha256, storage_name in map(json.loads, named):
            files.add(sha256, storage_name)
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            hypac=version(),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            migrations=migrations(),
            slug=project.slug,
            name=project.name,
            parts=parts.made,
            files=files.count,
            files_bytes=files.bytes,
            missing=files.missing,
            left_out=left_out,
        )
        archive.writestr(NAME, manifest.written())
    return manifest


class _Parts:
    """The tables of the file while they are written, one after the other."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.made: list[Part] = []
        self._archive = archive
        self._open: IO[bytes] | None = None

    def begin(self, name: str) -> None:
        self.end()
        self._name, self._sha256, self._rows, self._bytes = name, hashlib.sha256(), 0, 0
        self._open = self._archive.open(name, "w", force_zip64=True)

    def add(self, lines: _Lines) -> None:
        if self._open is None:
            raise ValueError("no part has begun")
        self._open.write(lines.content)
        self._sha256.update(lines.content)
        self._rows += lines.rows
        self._bytes += len(lines.content)

    def close(self) -> None:
        """Also of a part that broke off: the archive could not be closed, and would say that instead."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def end(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            self.made.append(Part(self._name, self._rows, self._bytes, self._sha256.hexdigest()))


class _Files:
    """The stored files, each once; what the storage has lost, or what is no longer itself, is listed."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.count = self.bytes = 0
        self.missing: list[str] = []
        self._archive = archive

    def add(self, sha256: str, storage_name: str) -> None:
        if not self._is_whole(sha256, storage_name):
            self.missing.append(sha256)
            if len(self.missing) > MOST_MISSING:
                raise HypacError(
                    f"More than {MOST_MISSING} files of the project are damaged or gone from the storage, "
                    f"one of them {storage_name}. Put the storage back from a backup first."
                )
            return
        info = zipfile.ZipInfo(f"files/{sha256}", datetime.now(UTC).timetuple()[:6])
        info.compress_type = AS_IT_IS
        with (
            default_storage.open(storage_name, "rb") as source,
            self._archive.open(info, "w", force_zip64=True) as copy,
        ):
            while block := source.read(BLOCK):
                copy.write(block)
                self.bytes += len(block)
        self.count += 1

    def _is_whole(self, sha256: str, storage_name: str) -> bool:
        digest = hashlib.sha256()
        try:
            with default_storage.open(storage_name, "rb") as source:
                while block := source.read(BLOCK):
                    digest.update(block)
        except FileNotFoundError:
            return False
        return digest.hexdigest() == sha256


# --- What is read from the snapshot -------------------------------------------------------------------------


def _pieces(project: int) -> Iterator[_Piece]:
    refuse_unfinished(Project.objects.get(pk=project))
    people = _People()
    for model in travelling():
        yield _Begins(f"tables/{name_of(model)}.jsonl")
        yield from _table(model, project, people)
    yield _Begins(PEOPLE)
    yield from _grouped(people.lines())
    counts = {words: rows_of(model, project).count() for model, words in STAYS_BEHIND.items() if words}
    yield _LeftOut({words: count for words, count in counts.items() if count})


def refuse_unfinished(project: Project) -> None:
    try:
        refuse_unfinished_jobs(project)
    except ConflictError as error:
        words = " A cancelled job can be started again where the project is imported."
        raise ConflictError(error.message + words, code=error.code) from None


def _table(model: Model, project: int, people: "_People") -> Iterator[_Piece]:
    fields = fields_of(model)
    names = [field.name for field in fields]
    persons = [field.name for field in fields if is_person(field)]
    found = rows_of(model, project).order_by("pk").values_list(*(field.attname for field in fields))

    def lines() -> Iterator[bytes]:
        for values in found.iterator(chunk_size=AT_ONCE):
            row: Row = cleaned(model, dict(zip(names, values, strict=True)))
            try:
                rewritten(model, row, people)  # for the people in it alone
            except Wrong as wrong:  # no import would take it
                raise HypacError(f"Row {row['id']} of {name_of(model)} cannot be used: {wrong}.") from None
            for name in persons:
                if row[name] is not None:
                    row[name] = people.name_of(row[name])
            for field in fields:
                row[field.name] = written(field, row[field.name])
            yield line_of(row)

    yield from _grouped(lines())
    if model is StoredFile:
        files = rows_of(StoredFile, project).order_by("pk").values_list("sha256", "storage_name")
        for sha256, storage_name in files.iterator(chunk_size=AT_ONCE):
            yield _Named(sha256, storage_name)


def _grouped(lines: Iterator[bytes]) -> Iterator[_Lines]:
    group, size = [], 0
    for line in lines:
        group.append(line)
        size += len(line)
        if size >= LINES:
            yield _Lines(b"".join(group), len(group))
            group, size = [], 0
    if group:
        yield _Lines(b"".join(group), len(group))


class _People(AsItIs):
    """Everybody whom a row names, by number: as `Ids`, it leaves all as it is and notes whom it comes by."""

    def __init__(self) -> None:
        self._known: dict[int, User | None] = {}

    def name_of(self, number: int) -> str:
        user = self._look_up(number)
        if user is None:
            raise HypacError(f"A row names account {number}, which is gone.")
        return user.username

    def new(self, model: Model, old: int) -> int:
        if model is User:
            self._look_up(old)
        return old

    def lines(self) -> Iterator[bytes]:
        for number, user in sorted(self._known.items()):
            if user is not None:
                told: dict[str, Any] = {"number": number, "name": user.username, "erased_at": None}
                if user.erased_at is not None:
                    told["erased_at"] = user.erased_at.isoformat()
                yield line_of(told)

    def _look_up(self, number: int) -> User | None:
        if number not in self._known:
            self._known[number] = None
            if number != NOWHERE:
                self._known[number] = User.objects.only("username", "erased_at").filter(pk=number).first()
        return self._known[number]
