"""Whose files a folder holds, written beside them: what is new there is told against that delivery.

Not the newest delivery of the project: that one may have gone elsewhere, or nowhere, since a disk was full.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _

from annotation.errors import ConflictError
from annotation.models import Project
from routing.delivery.parts import bases_of
from routing.models import Delivery, Run

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
            % {"folder": folder, "other": held.project, "project": project.slug, "name": NAME}
        )


def base_in(folder: Path, run: Run) -> Delivery | None:
    """The delivery on which one of this run that goes into the folder can build; None asks for all items."""
    held = _read(folder)
    if held is None or held.project != run.project.slug:
        return None
    return bases_of(run).filter(pk=held.delivery, given__sha256=held.given).first()


def goes_on(folder: Path, delivery: Delivery) -> bool:
    """Whether the folder's files and then these hold what all items have, as any whole delivery does."""
    if delivery.since_id is None or delivery.filters:
        return not delivery.is_part
    held = _read(folder)
    return held is not None and held == _of(delivery.since)


def note(folder: Path, delivery: Delivery) -> None:
    """Say that its files are there; once they are."""
    record = _of(delivery)
    if record is None:  # of an earlier version: nothing can be told against it
        return forget(folder)
    with replacing(folder / NAME) as file:
        file.write(json.dumps(asdict(record)).encode())
    return None


def forget(folder: Path) -> None:
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
