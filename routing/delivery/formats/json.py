"""JSON: one list with the objects of the JSON Lines file, each on a line of its own."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.jsonl import LIMITS, Lines
from routing.labels.page import DeliveryInfo, Page


class JsonWriter(RowWriter):
    file_name: ClassVar[str] = "labels.json"
    summary: ClassVar[Any] = _("As labels.jsonl, as one list.")
    media_type: ClassVar[str] = "application/json"
    limits: ClassVar[tuple[Limit, ...]] = LIMITS

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._out = files.open(self.file_name, self.media_type)
        self._lines = Lines(info)
        self._before = "["

    def write(self, page: Page) -> None:
        if page:
            self._out.write((self._before + "\n" + ",\n".join(self._lines.of(page))).encode())
            self._before = ","

    def close(self) -> None:
        self._out.write(b"[]\n" if self._before == "[" else b"\n]\n")
