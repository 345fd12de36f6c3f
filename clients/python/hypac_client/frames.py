"""A delivery's file as a pandas DataFrame: no value is another than in the file, and what HyPAC adds has the
same types whatever the file.
"""

import io
from collections.abc import Sequence
from typing import Any

from hypac_client.columns import columns_of_json, columns_of_parquet, typed_series

FLOATS = ("uncertainty", "p_i")
TEXTS = (
    *("label", "label_name", "source", "annotator", "settled_by"),
    *("certificate_id", "reason", "expert_saw"),
)
FIRST = "external_id"
"""What HyPAC adds begins with it."""
ADDED = (
    *(FIRST, "label", "label_name", "source", "annotator", "settled_by"),
    *("uncertainty", "p_i", "asked", "run", "certificate_id", "reason", "expert_saw"),
)
"""What it adds to every file, in the order of a row; of a run that took in later items also `taken_in` and
`audited`.
"""
PREFIX = "hypac_"


def table_of(content: bytes, name: str) -> Any:
    """The table in the bytes of `name`: the imported columns in their order, then ours.

    Of CSV the imported columns are text as the file has it, with the apostrophe before what a spreadsheet
    would take for a formula: whether a cell had one before, the file does not say.
    """
    import pandas as pd

    if name.endswith(".csv"):
        table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
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


def _place(column: str, names: Sequence[str]) -> int:
    """Where a column of ours is, prefixed where an imported one has its name; else behind them all."""
    for place in reversed(range(len(names))):
        bare = names[place]
        while bare.startswith(PREFIX):
            bare = bare.removeprefix(PREFIX)
        if bare == column:
            return place
    return len(names)
