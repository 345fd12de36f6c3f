"""Files with a row a line, or as a table: what `hypac` reads and writes."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any

from hypac_client.texts import read_json, text_of

OF_LOSSES, MOST_SHOWN = {"item", "measured"}, 100
"""What each row of losses has, and characters that are shown of another first line."""


def rows_of_losses(name: str) -> list[Any]:
    if name.lower().endswith(".csv"):
        rows = _rows_of_table(io.StringIO(text_of(name), newline=""))
    else:
        rows = rows_of_file(name)
        if lacking := next((number for number, row in enumerate(rows, 1) if not set(row) >= OF_LOSSES), 0):
            raise ValueError(f"row {lacking} needs item and measured, as `hypac losses` writes them")
    if not rows:
        raise ValueError("there is no row in it: nothing was sent")
    return rows


def _rows_of_table(file: Iterable[str]) -> list[Any]:
    csv.field_size_limit(2**31 - 1)  # what the measured labels and answers say may stand beside the losses
    try:
        table = csv.DictReader(file)
        columns = table.fieldnames or []
        if not columns:
            raise ValueError("the file is empty")
        if not set(columns) >= OF_LOSSES:
            raise ValueError(
                "the first line of a CSV has to name the columns item, measured, loss1 and so on, separated "
                f"by commas (decimals are written with a point); it is {','.join(columns)[:MOST_SHOWN]!r}"
            )
        return list(table)
    except csv.Error as error:
        raise ValueError(f"this is no CSV that can be read: {error}") from None


def write_lines(name: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """How many. A file of before is left as it is where the site gives none at all."""
    coming, count = iter(rows), 0
    first = list(islice(coming, 1))
    with open(name, "w", encoding="utf-8") as file:
        for row in chain(first, coming):
            count += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def rows_of_file(name: str) -> list[Any]:
    """Of a list as JSON, or of one row a line."""
    text = text_of(name)
    if text.lstrip().startswith("["):
        rows = list(json_in(text, name))
    else:
        rows = [
            json_in(line, f"{name}, line {number}")
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    if other := next((number for number, row in enumerate(rows, 1) if not isinstance(row, dict)), None):
        raise ValueError(f"row {other} is no object")
    return rows


def json_in(text: str, where: str) -> Any:
    """Raises ValueError that names the place for what is no JSON, or a number that is none."""
    try:
        return read_json(text, parse_constant=_no_number)
    except ValueError as error:
        told = getattr(error, "msg", str(error))
        raise ValueError(f"{where}: it is no JSON ({told}). Nothing was sent.") from None


def _no_number(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
