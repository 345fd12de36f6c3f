"""JSON: one list with the objects of the JSON Lines file, each on a line of its own."""

from collections.abc import Sequence
from typing import IO, ClassVar

from routing.delivery.base import Page
from routing.delivery.jsonl import JsonlWriter


class JsonWriter:
    file_name: ClassVar[str] = "labels.json"
    media_type: ClassVar[str] = "application/json"

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, several: bool = False) -> None:
        self._out = out
        self._objects = JsonlWriter(out, columns, several=several)
        self._before = "["

    def write(self, page: Page) -> None:
        if page:
            self._out.write((self._before + "\n" + ",\n".join(self._objects.lines(page))).encode())
            self._before = ","

    def close(self) -> None:
        self._out.write(b"[]\n" if self._before == "[" else b"\n]\n")
