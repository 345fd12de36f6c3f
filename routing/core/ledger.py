"""The ledger of alpha of one project as a document: entries that are linked by their hashes.

Each draw spends its alpha when it is stored, analysed or not; a final audit, a second certificate, when it is
drawn.  An entry holds the hash of the one before, so that whoever noted a hash once sees whether one of the
entries up to it was taken out or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from routing.core.certificate import Document, document_hash
from routing.core.exact import plain

DRAW, FINAL_AUDIT = "draw", "final_audit"
KINDS = (DRAW, FINAL_AUDIT)
KEYS = {"number", "run", "kind", "alpha", "target", "pool", "commitment", "previous", "sha256"}


def ledger_entry(
    *,
    number: int,
    run: int,
    kind: str,
    alpha: Decimal,
    target: str,
    pool: str,
    commitment: str,
    previous: str,
) -> Document:
    """One entry.

    Parameters
    ----------
    number
        1, 2, ... within the project.
    pool
        Hash of the pool that was drawn from.
    commitment
        Hash of the run's first commitment, "" of runs from before there were any; of a final audit the id of
        the certificate of its run.
    previous
        Hash of the entry before, "" of the first.
    """
    entry = {
        "number": number,
        "run": run,
        "kind": kind,
        "alpha": plain(alpha),
        "target": target,
        "pool": pool,
        "commitment": commitment,
        "previous": previous,
    }
    return {**entry, "sha256": document_hash(entry)}


def broken_links(entries: Sequence[Any]) -> Iterator[str]:
    """What is wrong with the links of a ledger, one sentence each."""
    previous = ""
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or entry.keys() != KEYS:
            yield f"ledger: entry {number} is no entry, or holds something else"
            return
        if type(entry["number"]) is not int or entry["number"] != number or entry["kind"] not in KINDS:
            yield f"ledger: entry {number} has another number or kind"
        if entry["previous"] != previous:
            yield f"ledger: entry {number} does not follow the one before it"
        if entry["sha256"] != document_hash(without_hash(entry)):
            yield f"ledger: entry {number} does not have the hash that stands there"
        previous = entry["sha256"]


def without_hash(entry: Mapping[str, Any]) -> Document:
    return {key: value for key, value in entry.items() if key != "sha256"}
