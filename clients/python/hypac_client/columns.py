"""Columns of a delivery's file: lists of Python's own values, which are exact, and columns of pandas that
hold these very values.
"""

import io
from collections.abc import Iterable, Sequence
from typing import Any

from hypac_client.texts import read_json

INT64 = range(-(2**63), 2**63)
EXACT = 2**53
"""Whole numbers up to here are doubles, too."""

Columns = dict[str, list[Any]]


def columns_of_json(content: bytes, name: str) -> tuple[Columns, list[str]]:
    """The columns, None where a row lacks one, and the names of a single row as they stand in it."""
    lines = content.split(b"\n") if name.endswith(".jsonl") else None
    rows = read_json(content) if lines is None else [read_json(line) for line in lines if line]
    # Few rows differ in what they have.
    names = in_order(dict.fromkeys(map(tuple, rows)))
    return {name: [row.get(name) for row in rows] for name in names}, list(rows[0]) if rows else []


def columns_of_parquet(content: bytes) -> Columns:
    """Not by pandas, which makes numbers with gaps floats, in lists, too."""
    import pyarrow.parquet as pq

    return dict(pq.read_table(io.BytesIO(content)).to_pydict())


def in_order(parts: Iterable[Sequence[str]]) -> list[str]:
    """All names, each behind those that stand before it in any part; those that come first first.

    The parts are taken from one order, so that there is always a name with nothing before it.
    """
    before: dict[str, set[str]] = {}
    for part in parts:
        for place, name in enumerate(part):
            before.setdefault(name, set()).update(part[place - 1 : place] if place else ())
    found: dict[str, None] = {}
    while len(found) < len(before):
        left = [name for name in before if name not in found]
        name = next((name for name in left if before[name] <= found.keys()), left[0])
        found[name] = None
    return list(found)


def typed_series(cells: list[Any]) -> Any:
    """As whole numbers, numbers, truth values or text where all but None are one of them; else as is."""
    import pandas as pd

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and all(cell is None or cell in INT64 for cell in cells):
        return pd.Series(pd.array(cells, dtype="Int64"))
    if kinds == {bool}:
        return pd.Series(pd.array(cells, dtype="boolean"))
    whole = (cell for cell in cells if type(cell) is int)
    if float in kinds and kinds <= {int, float} and all(abs(cell) <= EXACT for cell in whole):
        return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")
    return pd.Series(cells) if kinds == {str} else pd.Series(cells, dtype=object)
