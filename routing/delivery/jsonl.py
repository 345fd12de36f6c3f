"""JSON Lines: one object per item, exact, with the item's own columns in their order and then ours."""

import json
from collections.abc import Mapping, Sequence
from typing import IO, ClassVar

from routing.delivery.base import ADDED, Row, added_names


class JsonlWriter:
    file_name: ClassVar[str] = "labels.jsonl"
    media_type: ClassVar[str] = "application/x-ndjson"

    def __init__(self, out: IO[bytes], columns: Sequence[str]) -> None:
        self._out = out
        self._columns = columns
        self._names = added_names(columns)

    def write(self, original: Mapping[str, str], row: Row) -> None:
        line = {column: original[column] for column in self._columns if column in original}
        line |= {self._names[name]: getattr(row, name) for name in ADDED}
        self._out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Every line is written at once."""
