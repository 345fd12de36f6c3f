"""A delivery as files of a folder on this machine, and beside them whose they are: what is new there is told
against that delivery.

Not the newest delivery of the project: that one may have gone elsewhere, or nowhere, since a disk was full.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from django.utils.translation import gettext as _

from annotation.common.files import BLOCK, open_file
from annotation.errors import ConflictError, HypacError
from annotation.models import Project, StoredFile
from routing.delivery.parts import bases_of
from routing.delivery.places import MANIFEST
from routing.models import Delivery, Run


def check_folder(folder: Path, *, project: Project) -> None:
    """Make the folder where it is missing. Raises HypacError where nothing of the project can be written into
    it, which is better known before a delivery is made for it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        words = _("Nothing can be written into the folder %(folder)s: %(reason)s.")
        raise HypacError(words % {"folder": folder, "reason": error.strerror}) from error
    check_project(folder, project)


def write_delivery(*, delivery: Delivery, folder: Path) -> list[Path]:
    """Write its files into the folder, which is made where it is missing, and return their paths.

    A file takes its name only once it is whole and its SHA-256 is right; one of that name is replaced. What
    an earlier delivery left and this one does not have is removed (`stale_files`); the manifest comes last.
    Which delivery it was is noted then, so that what could not be written is told again. Raises HypacError
    where the stored file is not what was delivered, OSError where it cannot be written.
    """
    written = []
    whole = extends_folder(folder, delivery)
    if not whole:
        forget_delivery(folder)
    entries = list(delivery.files.select_related("file"))
    stale = stale_files(folder, {entry.name for entry in entries})
    for entry in sorted(entries, key=lambda one: one.name == MANIFEST):
        if entry.name == MANIFEST:
            remove(folder, stale)
        path = folder / entry.name  # names are the formats' own, never a person's
        if not path.resolve().is_relative_to(folder.resolve()):
            raise HypacError(_("The name of the file leads out of the folder."), where=entry.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(entry.file, path)
        written.append(path)
    if whole:
        record_delivery(folder, delivery)
    return written


def holds(folder: Path, delivery: Delivery) -> bool:
    """Whether its files were written there, and nothing since."""
    record = _read(folder)
    if record is not None and record == _of(delivery):
        return True
    entry = delivery.files.select_related("file").filter(name=MANIFEST).first()
    return entry is not None and _digest(folder / MANIFEST) == entry.file.sha256


def stale_files(folder: Path, names: Collection[str]) -> list[Path]:
    """Files of the folder that its manifest names, which are none of `names`, and still are what it says:
    those of an earlier delivery. Whatever somebody changed or put there is not ours.
    """
    try:
        found = json.loads((folder / MANIFEST).read_bytes())["files"]
        named = {str(name): str(facts["sha256"]) for name, facts in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    others = {name: sha256 for name, sha256 in named.items() if name not in names}
    return [folder / name for name, sha256 in others.items() if _is_ours(folder, name, sha256)]


def _is_ours(folder: Path, name: str, sha256: str) -> bool:
    """Whether it names a file of the folder in the one way in which a delivery does, without a link on the
    way, and that is what the manifest says.
    """
    if PurePosixPath(name).as_posix() != name or name.startswith("/"):
        return False
    try:
        path = folder.resolve() / name
        return path.resolve() == path and path.is_file() and _digest(path) == sha256
    except (OSError, ValueError, RuntimeError):  # no name of a file, or a link to itself
        return False


def remove(folder: Path, paths: Sequence[Path]) -> None:
    """With the folders within `folder` that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == folder or next(parent.iterdir(), None) is not None:
                break
            parent.rmdir()


def _digest(path: Path) -> str:
    """Of a file that is there; else ""."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(stored: StoredFile, path: Path) -> None:
    digest = hashlib.sha256()
    with replacing(path) as file, open_file(stored) as content:
        while block := content.read(BLOCK):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != stored.sha256:
            raise HypacError(
                _("The stored file is damaged: its SHA-256 is not that of the delivery. Make a new one."),
                where=path.name,
            )


NAME = ".hypac.json"


@dataclass(frozen=True)
class _Record:
    """`given` is the SHA-256 of what that delivery keeps: a database put back may give its id again."""

    project: str
    delivery: int
    given: str


def check_project(folder: Path, project: Project) -> None:
    """Raises ConflictError where another project's files are in the folder."""
    held = _read(folder)
    if held is not None and held.project != project.slug:
        raise ConflictError(
            _(
                "The folder %(folder)s holds a delivery of the project “%(other)s”, not of “%(project)s”. "
                "Choose another folder, or remove everything in it, %(name)s as well."
            )
            % {"folder": folder, "other": held.project, "project": project.slug, "name": NAME},
            code="folder_of_other_project",
        )


def base_in(folder: Path, run: Run) -> Delivery | None:
    """The delivery on which one of this run that goes into the folder can build; None asks for all items."""
    held = _read(folder)
    if held is None or held.project != run.project.slug:
        return None
    return bases_of(run).filter(pk=held.delivery, given__sha256=held.given).first()


def extends_folder(folder: Path, delivery: Delivery) -> bool:
    """Whether the folder's files and then these hold what all items have, as any whole delivery does."""
    if delivery.since_id is None or delivery.filters:
        return not delivery.is_part
    held = _read(folder)
    return held is not None and held == _of(delivery.since)


def record_delivery(folder: Path, delivery: Delivery) -> None:
    """Say that its files are there; once they are."""
    record = _of(delivery)
    if record is None:  # of an earlier version: nothing can be told against it
        return forget_delivery(folder)
    with replacing(folder / NAME) as file:
        file.write(json.dumps(asdict(record)).encode())
    return None


def forget_delivery(folder: Path) -> None:
    """The next delivery into the folder has all items."""
    (folder / NAME).unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the name only once all of it is on the disk; nothing is left where that fails."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        part = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.chmod(0o666 & ~_umask())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before


def _of(delivery: Delivery | None) -> _Record | None:
    if delivery is None or delivery.given is None:
        return None
    return _Record(delivery.run.project.slug, delivery.pk, delivery.given.sha256)


def _read(folder: Path) -> _Record | None:
    """None where there is none, or something else under its name."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        record = _Record(**json.loads((folder / NAME).read_text()))
        if [type(value) for value in asdict(record).values()] == [str, int, str]:
            return record
    return None
