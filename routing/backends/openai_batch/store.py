"""Results that were read from a file by hand: `manage.py read_batch` puts them here, and they are used before
anything is sent."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from django.conf import settings

from routing.backends.openai_batch.lines import Result, read_results


class ResultStore:
    """The results of one source, under the key that its batches have."""

    def __init__(self, key: str) -> None:
        self.path = Path(settings.VAR_DIR) / "batches" / f"{key}.jsonl"

    def add(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Store results; how many were answered, and how many were not and are left out."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        answered = failed = 0
        with self.path.open("ab") as file:
            if file.tell():
                file.write(b"\n")  # whoever wrote last may have been killed in the middle of a line
            for line in lines:
                for result in read_results([line]):
                    if result.body is None:
                        failed += 1
                        continue
                    file.write(line.strip() + b"\n")
                    answered += 1
        return answered, failed

    def get(self, custom_id: str) -> Result | None:
        place = self._places.get(custom_id)
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            return next(read_results([file.readline()]), None)

    @cached_property
    def _places(self) -> dict[str, int]:
        """custom_id -> where its line begins; the newest line counts."""
        return dict(self._scan()) if self.path.exists() else {}

    def _scan(self) -> Iterator[tuple[str, int]]:
        with self.path.open("rb") as file:
            place = 0
            for line in file:
                for result in read_results([line]):
                    yield result.custom_id, place
                place += len(line)
