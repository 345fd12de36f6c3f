"""Results that were read from a file by hand: `manage.py read_batch` puts them into the storage of files, so
that a worker on any host finds them, and they are used before anything is sent."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage

from routing.sources.backends.openai_batch.lines import Result, read_results

IN_MEMORY = 8 * 1024**2


class ResultStore:
    """The results of one source, under the key that its batches have: a folder with one file a reading."""

    def __init__(self, key: str) -> None:
        self.folder = f"batches/{key}"
        # Where they were before they lay in the storage.
        self._earlier = Path(settings.VAR_DIR) / "batches" / f"{key}.jsonl"

    def add(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Store results; how many were answered, and how many were not and are left out.

        All or nothing. Raises StorageError where the storage cannot be used.
        """
        answered = failed = 0
        digest = hashlib.sha256()
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            for line in lines:
                for result in read_results([line]):
                    if result.body is None:
                        failed += 1
                        continue
                    kept = line.strip() + b"\n"
                    file.write(kept)
                    digest.update(kept)
                    answered += 1
            if answered:
                file.seek(0)
                number = len(self._names()) + 1
                default_storage.save(
                    f"{self.folder}/{number:06d}-{digest.hexdigest()[:16]}.jsonl", File(file)
                )
        return answered, failed

    def get(self, custom_id: str) -> Result | None:
        place = self._places.get(custom_id)
        if place is None:
            return None
        self._content.seek(place)
        return next(read_results([self._content.readline()]), None)

    def _names(self) -> list[str]:
        """In the order in which they were read."""
        try:
            return sorted(default_storage.listdir(self.folder)[1])
        except FileNotFoundError:
            return []

    @cached_property
    def _content(self) -> IO[bytes]:
        """All of them behind each other, in a file of this process: they are looked up one by one."""
        content = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - as long as this object
        if self._earlier.exists():
            with self._earlier.open("rb") as file:
                shutil.copyfileobj(file, content)
            content.write(b"\n")  # whoever wrote last may have been killed in the middle of a line
        for name in self._names():
            with default_storage.open(f"{self.folder}/{name}") as file:
                shutil.copyfileobj(file, content)
        return content

    @cached_property
    def _places(self) -> dict[str, int]:
        """custom_id -> where its line begins; the newest line counts."""
        return dict(self._scan())

    def _scan(self) -> Iterator[tuple[str, int]]:
        place = 0
        self._content.seek(0)
        for line in self._content:
            for result in read_results([line]):
                yield result.custom_id, place
            place += len(line)
