"""What a delivery format writes of some rows, without a database."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from routing.delivery.formats import FORMATS
from routing.delivery.formats.base import Files, Writer
from routing.labels.kinds import Kinds
from routing.labels.page import DeliveryInfo, Page, Row

Rows = Sequence[tuple[Mapping[str, Any], Row]]


def files_written(
    name: str, info: DeliveryInfo, rows: Rows, *cuts: int, texts: Sequence[str] = ()
) -> tuple[dict[str, bytes], Writer]:
    """The files by their names, and the closed writer; pages end at `cuts`."""
    files = Files(io.BytesIO)
    writer = FORMATS[name](files, info)
    for start, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        writer.write(page_of(rows[start:end], texts[start:end]))
    writer.close()
    return {file.name: file.content.getvalue() for file in files.made}, writer


def page_of(rows: Rows, texts: Sequence[str] = ()) -> Page:
    """Cells that are no text stand among the typed values, as an import stores them."""
    typed = [{k: v for k, v in original.items() if not isinstance(v, str)} or None for original, _ in rows]
    page = Page.of(rows, texts)
    return Page(page.originals, page.columns, typed if any(typed) else (), texts)


def kinds_of(rows: Rows) -> dict[str, str]:
    kinds = Kinds()
    kinds.add([original for original, _ in rows])
    return kinds.of_columns()
