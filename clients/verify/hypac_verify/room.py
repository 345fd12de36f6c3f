"""How many items of a pool the files of a delivery have room for, before anything is computed of its size."""

from __future__ import annotations

from collections.abc import Mapping
from os import SEEK_END
from pathlib import Path

from hypac_verify.delivered_file import ADDED
from hypac_verify.reading import Plan, Report, opened

COMMITTED = len(b'{"answers":[],"content":"","item_id":"","u":0}')
"""Bytes that a line of ``committed.jsonl`` has at least; it holds the pool, in parts of a delivery too."""
ROW = len(ADDED) - 1
"""The same of a delivered row as text, in its shortest form a line of empty cells. It has more."""
AS_TEXT = (
    *("labels.jsonl", "labels.csv", "labels.tsv", "labels.json"),
    *("doccano.jsonl", "labels.manifest"),
)


def has_room(plan: Plan, files: Mapping[str, Path], report: Report, *, part_of: bool) -> bool:
    """Whether each file can hold the pool of the plan; a fault where one cannot. ``part_of``: the delivered
    rows are a part of the items.
    """
    rows = dict.fromkeys(() if part_of else AS_TEXT, ROW)
    for name, least in {"committed.jsonl": COMMITTED, **rows}.items():
        if name not in files:
            continue
        with opened(files[name]) as file:
            size = file.seek(0, SEEK_END)
        if size < plan.pool_size * least:
            report.fault(
                f"certificate.json: its pool has {plan.pool_size:,} items, for which {name} with its "
                f"{size:,} bytes is too short; nothing more was computed of this size"
            )
            return False
    return True
