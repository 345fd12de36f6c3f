"""A delivery's file as a pandas DataFrame: no value is another than in the file, and what HyPAC adds has the
same types whatever the file.
"""

import io
import re
from collections.abc import Sequence
from typing import Any

from hypac_client.columns import columns_of_json, columns_of_parquet, typed_series

FLOATS = ("uncertainty", "p_i")
TEXTS = (
    *("label", "label_name", "source", "annotator", "settled_by"),
    *("certificate_id", "reason", "expert_saw", "suggestion"),
)
FIRST = "external_id"
"""What HyPAC adds begins with it."""
ADDED = (
    *(FIRST, "label", "label_name", "source", "annotator", "settled_by"),
    *("uncertainty", "p_i", "asked", "run", "certificate_id", "reason", "expert_saw"),
)
"""What it adds to every file, in the order of a row; of a run that took in later items also `taken_in` and
`audited`, of one whose people see suggestions `suggestion`.
"""
PREFIX = "hypac_"
FORMULA = re.compile(
    r"'+(?:[\t\r\n]|[\s\x00-\x1f\x7f\x85\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
    r"[=+@＝＋＠﹦﹢﹫\-－﹣])"
)


def table_of(content: bytes, name: str) -> Any:
    """The table in the bytes of `name`: the imported columns in their order, then ours.

    Of CSV the imported columns are text, without the apostrophe that the file has before what a spreadsheet
    would take for a formula.
    """
    import pandas as pd

    if name.endswith(".csv"):
        table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
        table = table.rename(columns=_from_text).map(_from_text)
        names = list(table.columns)
        return _typed(table, names[_place(FIRST, names) :])
    read = columns_of_parquet(content) if name.endswith(".parquet") else None
    columns, names = (read, list(read)) if read is not None else columns_of_json(content, name)
    if not names:  # no row tells them: nothing is new, say
        columns, names = {name: [] for name in ADDED}, list(ADDED)
    added = names[_place(FIRST, names) :]
    made = {name: typed_series(cells) for name, cells in columns.items() if name not in added}
    made |= {name: pd.Series(columns[name], dtype=object) for name in added}
    return _typed(pd.DataFrame(made), added)


def _typed(table: Any, names: Sequence[str]) -> Any:
    """`names` are ours, as the file has them."""
    made = {
        **dict.fromkeys(FLOATS, ("float64", float)),
        **dict.fromkeys(("run", "taken_in"), ("Int64", int)),
        "asked": ("bool", lambda cell: cell in (True, "true")),
        "audited": ("boolean", lambda cell: cell in (True, "true")),
        **dict.fromkeys((FIRST, *TEXTS), ("", None)),
    }
    for column, (kind, convert) in made.items():
        place = _place(column, names)
        if place == len(names):
            continue
        found = names[place]
        cells = table[found]
        there = cells[cells.notna() & (cells != "")]
        there = there.infer_objects() if convert is None else there.map(convert).astype(kind)
        table[found] = there.reindex(table.index)
    return table


def _from_text(cell: str) -> str:
    """Without the apostrophe that keeps a spreadsheet from taking the cell for a formula."""
    return cell[1:] if FORMULA.match(cell) else cell


def _place(column: str, names: Sequence[str]) -> int:
    """Where a column of ours is, prefixed where an imported one has its name; else behind them all."""
    for place in reversed(range(len(names))):
        bare = names[place]
        while bare.startswith(PREFIX):
            bare = bare.removeprefix(PREFIX)
        if bare == column:
            return place
    return len(names)
