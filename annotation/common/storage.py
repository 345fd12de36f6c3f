"""Where files lie on one machine, and the error of any storage that cannot be used at the moment.

`annotation.outside.object_store` is the same on an S3-compatible store. Both keep what
`annotation.common.files` relies on: under a name there is either nothing or the whole content, and writing
the same bytes twice, also at the same moment, has one effect.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import HypacError

UNFINISHED = ".part"
UNUSABLE = failures.register(
    "storage_unusable", gettext_noop("The storage of files cannot be used at the moment: %(reason)s.")
)
# Parts of that: here, since pages that tell of them have no need of the object store itself.
ANSWERED = failures.register("object_store_answered", gettext_noop("the object store answered %(said)s"))
NOT_ASKED = failures.register(
    "object_store_not_asked", gettext_noop("the object store could not be asked (%(error)s)")
)


class StorageError(HypacError):
    """The storage cannot be used at the moment: a disk is full, the object store does not answer."""

    def __init__(self, reason: str | failures.Part) -> None:
        params = {"reason": reason}
        super().__init__(UNUSABLE.sentence(params), permanent=False, code=UNUSABLE.code, params=params)


@dataclass(frozen=True)
class Leftover:
    """What a writer that was killed has left: no name leads to it. `key` is for the storage itself."""

    key: str
    written_at: datetime


class LocalFiles(FileSystemStorage):
    """A folder. A file appears under its name when it is whole; one that is there is replaced."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: Any) -> str:
        part = f"{name}.{uuid.uuid4().hex}{UNFINISHED}"
        try:
            with _told():
                super()._save(part, content)  # type: ignore[misc]  # the stubs leave it out
                os.replace(self.path(part), self.path(name))
        except BaseException:
            with suppress(OSError):
                os.unlink(self.path(part))
            raise
        return name

    def _open(self, name: str, mode: str = "rb") -> Any:
        with _told():
            return super()._open(name, mode)  # type: ignore[misc]  # the stubs leave it out

    def walk(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Names of the whole files under a folder, each with when it was written."""
        for path in self._files(prefix):
            if path.suffix != UNFINISHED:
                with suppress(FileNotFoundError):  # removed meanwhile
                    yield path.relative_to(self.location).as_posix(), _written(path)

    def leftovers(self, prefix: str) -> Iterator[Leftover]:
        """What killed writers have left under a folder."""
        for path in self._files(prefix):
            if path.suffix == UNFINISHED:
                with suppress(FileNotFoundError):
                    yield Leftover(path.relative_to(self.location).as_posix(), _written(path))

    def remove_leftover(self, leftover: Leftover) -> None:
        self.delete(leftover.key)

    def _files(self, prefix: str) -> Iterator[Path]:
        return (Path(folder, name) for folder, _inner, names in os.walk(self.path(prefix)) for name in names)


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


@contextmanager
def _told() -> Iterator[None]:
    """Say of a full or broken disk what every storage says; that there is no such file stays as it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(error.strerror or type(error).__name__) from error
