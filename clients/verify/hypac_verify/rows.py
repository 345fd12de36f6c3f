"""The lines of ``draw.jsonl`` (docs/statistics.md, "The certificate")."""

from __future__ import annotations

from hypac_verify.reading import Document, Row, UnusableError, canonical, decimal, parse, part, threshold

NEEDED = {"order", "item_id", "position", "asked", "p", "u", "v", "label", "answers"}
AFTER = {"annotator", "person", "later", "losses"}
"""What labels, and what came after them, add to a row beside its label."""
OPTIONAL = {"own", "called"} | AFTER


def draw_row(line: bytes, number: int) -> Row:
    """One line of the draw. Raises UnusableError."""
    where = f"draw.jsonl, line {number}"
    row = parse(line, where)
    if not isinstance(row, dict) or not row.keys() >= NEEDED or row.keys() - NEEDED - OPTIONAL:
        raise UnusableError(f"{where}: no row of a draw, or with a key of its own")
    if ("annotator" in row) != ("person" in row):
        raise UnusableError(f"{where}: 'annotator' and 'person' belong together")
    answers, own, called = (
        part(row, name, list, where) if name in row else [] for name in ("answers", "own", "called")
    )
    if not all(a is None or isinstance(a, str) for a in answers) or not all(type(c) is bool for c in called):
        raise UnusableError(f"{where}: 'answers' or 'called' holds something else")
    later = part(row, "later", list, where) if "later" in row else []
    if not all(type(place) is int and 2 <= place <= len(answers) for place in later) or later != sorted(
        set(later)
    ):
        raise UnusableError(f"{where}: 'later' is no list of models")
    if any(name in row and not row[name] for name in ("own", "called", "later", "losses")):
        raise UnusableError(f"{where}: an empty list")
    u = part(row, "u", float, where)
    if not 0 <= u <= 1:
        raise UnusableError(f"{where}: 'u' is outside [0, 1]")
    return Row(
        order=part(row, "order", int, where),
        item_id=part(row, "item_id", str, where),
        position=part(row, "position", int, where),
        asked=part(row, "asked", bool, where),
        p=decimal(row, "p", where),
        u=u + 0.0,
        v=part(row, "v", int, where),
        label=part(row, "label", (str, type(None)), where),
        answers=tuple(answers),
        own=tuple(threshold(entry, where) for entry in own),
        called=tuple(called),
        annotator=part(row, "annotator", str, where) if "annotator" in row else "",
        person=part(row, "person", (str, type(None)), where) if "person" in row else None,
        later=tuple(later),
        losses=_losses(row, where),
        blank=_blank(row, later),
    )


def _losses(row: Document, where: str) -> tuple[float | None, ...]:
    losses = part(row, "losses", list, where) if "losses" in row else []
    if not all(loss is None or (type(loss) in (int, float) and 0 <= loss <= 1) for loss in losses):
        raise UnusableError(f"{where}: 'losses' holds something else than numbers from 0 to 1")
    return tuple(losses)


def _blank(row: Document, later: list[int]) -> bytes:
    kept = {name: value for name, value in row.items() if name not in AFTER}
    for name, first, nothing in (("answers", 1, None), ("own", 2, None), ("called", 1, False)):
        if name in kept:
            kept[name] = [
                nothing if place in later else value for place, value in enumerate(kept[name], start=first)
            ]
    return canonical({**kept, "label": None})
