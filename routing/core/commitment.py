"""The two commitments of a run: what was fixed before its draw existed, and before its first label.

Whoever notes their hashes when they are shown can tell later that nothing behind them was changed: the scores
and answers, the chains, the plan and the ledger before anybody could know which items would be drawn; the
draw, and what models had said of its items, before anybody could know a label.

The number that the draw comes from may be one that nobody could foresee, or choose, when the first commitment
was made: see `drawn_entropy`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import Document, canonical_bytes, document_hash, draw_line, plan_document
from routing.core.documents import DocumentError
from routing.core.ledger import DRAW, broken_links
from routing.core.merkle import merkle_root
from routing.core.plan import Plan
from routing.core.rules import split_fixed_sequence

FORMAT, VERSION = "hypac-commitment", 1
SYSTEM, NONCE, DRAND, NIST = "system", "nonce", "drand", "nist"
KINDS = (SYSTEM, NONCE, DRAND, NIST)
"""Where the number comes from: this machine, on trust; a stranger; a round of a public beacon."""
OF_CHAIN = ("name", "shape", "models", "share")
OF_POLICY = ("thresholds", "move", "counts", "model_cost", "people_cost")
"""What of a chain and its policies is fixed beforehand; the rest is the outcome of tests, or computed of the
draw."""

Answer = tuple[str | None, float | None]
"""A model's answer, None where it cannot be used, and its score, None where it has none."""


def item_line(item_id: str, content: str, u: float | None, answers: Sequence[Answer | None]) -> bytes:
    """A line of ``committed.jsonl`` or ``pilot.jsonl``, without its end.

    Parameters
    ----------
    content
        SHA-256 of what people see of the item.
    u
        Uncertainty of the first model's answer; None where there is none yet.
    answers
        Of each model; None where it had not answered.
    """
    return canonical_bytes(
        {
            "item_id": item_id,
            "content": content,
            "u": None if u is None else float(u) + 0.0,
            "answers": [
                None if answer is None else [answer[0], None if answer[1] is None else float(answer[1]) + 0.0]
                for answer in answers
            ],
        }
    )[:-1]


def lines_document(lines: Iterable[bytes]) -> Document:
    """Lines as a commitment holds them: how many, and their Merkle root."""
    count = 0

    def counted() -> Iterator[bytes]:
        nonlocal count
        for line in lines:
            count += 1
            yield line

    root = merkle_root(counted())
    return {"count": count, "root": root}


def fixed_chains(document: Mapping[str, Any], rule: str) -> str:
    """Hash of what is fixed of chains and slices, of a certificate or of the documents that they are frozen
    as.  A chain that ``rule`` learns from labels is not.
    """
    return document_hash(_fixed(document, rule))


def _fixed(document: Mapping[str, Any], rule: str) -> Document:
    fixed: Document = {name: document[name] for name in ("scored", "lazy", "slices") if name in document}
    if rule != split_fixed_sequence.RULE.name:
        fixed["chains"] = [
            {
                **{name: chain[name] for name in OF_CHAIN if name in chain},
                "policies": [
                    {name: policy[name] for name in OF_POLICY if name in policy}
                    for policy in chain["policies"]
                ],
            }
            for chain in document["chains"]
        ]
    if "scores" in document:
        fixed["scores"] = _fixed(document["scores"], rule)
    return fixed


def before_draw(
    *,
    project: str,
    run: int,
    plan: Plan,
    entropy: int,
    pool_hash: str,
    sources: Sequence[Any],
    items: Document,
    pilot: Document | None,
    chains: str | None,
    reference: Document | None,
    ledger: Document,
    draw_from: Document,
) -> Document:
    """The first commitment.

    Parameters
    ----------
    plan
        As its certificate will hold it.
    entropy
        That of the run, which pilot and salt come from.
    sources
        The models, as under "provenance" of the certificate.
    items, pilot
        `lines_document` of the pool and of the pilot; None where the pilot is drawn from what the draw leaves
        (target `population`).
    chains
        `fixed_chains`; None where they are built with a view to what was not drawn.
    reference
        Of the certificate, without what the draw and the labels add to it.
    ledger
        ``entries``, how many there are, and ``head``, the hash of the last one or "".
    draw_from
        ``kind``, one of `KINDS`; of a beacon which round.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "number": 1,
        "project": project,
        "run": run,
        "plan": plan_document(plan),
        "entropy": str(entropy),
        "pool": {"size": plan.pool_size, "hash": pool_hash},
        "sources": list(sources),
        "items": items,
        "pilot": pilot,
        "chains": chains,
        "reference": reference,
        "ledger": ledger,
        "draw_from": draw_from,
    }


def before_labels(
    first: Mapping[str, Any],
    *,
    randomness: Document,
    rows: Sequence[CalibrationRow],
    pilot: Document | None,
    chains: str | None,
    rechecked: int | None,
    ledger: Document,
) -> Document:
    """The second commitment, of a run whose first is ``first``.

    Parameters
    ----------
    randomness
        ``kind`` as in the first, and ``value``, the text that the draw comes from with it; None of `SYSTEM`.
    rows
        Of the draw, in its order, with the answers that are there.
    pilot, chains
        What the first leaves open; else None.
    rechecked
        n_B, where an expert is the reference.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "number": 2,
        "project": first["project"],
        "run": first["run"],
        "before_draw": document_hash(first),
        "randomness": randomness,
        "draw": {
            "rows": len(rows),
            "asked": sum(row.asked for row in rows),
            "sha256": blank_hash(blank_line(row) for row in rows),
        },
        "pilot": pilot,
        "chains": chains,
        "rechecked": rechecked,
        "ledger": ledger,
    }


def drawn_entropy(entropy: int, first_hash: str, randomness: Mapping[str, Any]) -> int:
    """The number that the calibration set is drawn from: the run's own where that is on trust, else the first
    16 bytes of SHA-256(first commitment's hash || value), which nobody knew when the commitment was made.
    """
    if randomness["kind"] == SYSTEM:
        return entropy
    digest = hashlib.sha256(bytes.fromhex(first_hash) + str(randomness["value"]).encode()).digest()
    return int.from_bytes(digest[:16], "big")


def blank_line(row: CalibrationRow) -> bytes:
    """A line of ``draw.jsonl`` as it was before the first label, without its end: without labels, whose the
    item is, and what models said later (`CalibrationRow.later`).
    """
    after = {place - 1 for place in row.later}
    answers = tuple(None if place in after else answer for place, answer in enumerate(row.answers))
    own = tuple(None if place in after else key for place, key in enumerate(row.own, start=1))
    called = tuple(was and place not in after for place, was in enumerate(row.called))
    blank = replace(
        row,
        label=None,
        answers=answers,
        own=own,
        called=called,
        annotator="",
        person=None,
        later=(),
        losses=(),
    )
    return draw_line(blank).encode()


def blank_hash(lines: Iterable[bytes]) -> str:
    """SHA-256 over `blank_line` of every row, each with its line end."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
    return digest.hexdigest()


def later_answers(row: CalibrationRow, committed: CalibrationRow) -> tuple[int, ...]:
    """Positions of the models that answered about an item after the second commitment.

    Raises
    ------
    ValueError
        What had been committed to is another thing now.
    """
    places = range(len(row.answers))
    later = tuple(place + 1 for place in places if _of_model(row, place) != _of_model(committed, place))
    if blank_line(replace(row, later=later)) != blank_line(committed):
        raise ValueError(f"what models said of item {row.item_id!r} is not what was committed to")
    return later


def _of_model(row: CalibrationRow, place: int) -> tuple[object, ...]:
    own = row.own[place - 1] if place and row.own else None
    return row.answers[place], own, row.called[place] if row.called else None


def commitment_differences(
    document: Mapping[str, Any], plan: Plan, rows: Sequence[CalibrationRow]
) -> Iterator[str]:
    """Where a certificate of version 6 is not what its commitments say, one sentence each.

    Raises
    ------
    DocumentError
        They cannot be read.
    """
    first, second = read_commitments(document)
    try:
        yield from _first_differences(document, plan, first)
        yield from _second_differences(document, plan, rows, first, second)
        yield from _ledger_differences(document, plan, first, second)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DocumentError(f"certificate: commitments: {type(error).__name__}: {error}") from None


def read_commitments(document: Mapping[str, Any]) -> tuple[Document, Document]:
    """Both commitments of a certificate. Raises `DocumentError` where they are none."""
    both = document.get("commitments")
    if not isinstance(both, dict) or both.keys() != {"before_draw", "before_labels"}:
        raise DocumentError("certificate: 'commitments' is missing, or not the two")
    for number, name in enumerate(("before_draw", "before_labels"), start=1):
        one = both[name]
        known = isinstance(one, dict) and (one.get("format"), one.get("version")) == (FORMAT, VERSION)
        if not known or one.get("number") != number:
            raise DocumentError(f"certificate: commitments.{name} is no commitment that is known here")
    if not isinstance(both["before_labels"].get("randomness"), dict) or not isinstance(
        both["before_draw"].get("draw_from"), dict
    ):
        raise DocumentError("certificate: commitments: where the draw comes from is missing")
    kind, value = (both["before_labels"]["randomness"].get(name) for name in ("kind", "value"))
    if kind not in KINDS or (value is None) != (kind == SYSTEM) or not isinstance(value, str | None):
        raise DocumentError("certificate: commitments: the draw comes from nothing that is known here")
    return both["before_draw"], both["before_labels"]


def _first_differences(document: Mapping[str, Any], plan: Plan, first: Mapping[str, Any]) -> Iterator[str]:
    provenance, population = document["provenance"], plan.target == "population"
    reference = {
        key: value
        for key, value in document.get("reference", {}).items()
        if key not in ("rechecked", "replaced")
    }
    expected = {
        "project": provenance.get("project"),
        "run": provenance.get("run"),
        "plan": document["plan"],
        "entropy": document["draw"]["entropy"],
        "pool": document["pool"],
        "sources": provenance.get("sources"),
        "reference": reference or None,
        "chains": None if population else fixed_chains(document, plan.rule),
    }
    for name, value in expected.items():
        if first[name] != value:
            yield f"certificate: commitments.before_draw.{name} is not what the certificate says"
    if first["items"]["count"] != plan.pool_size:
        yield "certificate: commitments.before_draw.items are not as many as the pool's"
    if (first["pilot"] is None) != population:
        yield "certificate: commitments.before_draw.pilot does not belong to this target"


def _second_differences(
    document: Mapping[str, Any],
    plan: Plan,
    rows: Sequence[CalibrationRow],
    first: Mapping[str, Any],
    second: Mapping[str, Any],
) -> Iterator[str]:
    population = plan.target == "population"
    expected = {
        "project": first["project"],
        "run": first["run"],
        "before_draw": document_hash(first),
        "draw": {
            "rows": len(rows),
            "asked": sum(row.asked for row in rows),
            "sha256": blank_hash(map(blank_line, rows)),
        },
        "chains": fixed_chains(document, plan.rule) if population else None,
        "rechecked": document.get("reference", {}).get("rechecked"),
    }
    for name, value in expected.items():
        if second[name] != value:
            yield f"certificate: commitments.before_labels.{name} is not what certificate and draw give"
    if any(row.later for row in rows) and document.get("lazy") is not True:
        yield "draw: answers came after the second commitment, and the rule asks nobody then"
    if (second["pilot"] is None) == population:
        yield "certificate: commitments.before_labels.pilot does not belong to this target"
    if second["randomness"]["kind"] != first["draw_from"]["kind"]:
        yield "certificate: commitments: the draw comes from another source than was named before it"


def _ledger_differences(
    document: Mapping[str, Any], plan: Plan, first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[str]:
    entries = document["ledger"]
    broken = list(broken_links(entries))
    if broken:
        yield from broken
        return
    own, before = second["ledger"]["entries"], first["ledger"]["entries"]
    heads = ["", *(entry["sha256"] for entry in entries)]
    for name, count, head in (
        ("before_draw", before, first["ledger"]["head"]),
        ("before_labels", own, second["ledger"]["head"]),
    ):
        if type(count) is not int or not 0 <= count <= len(entries) or heads[count] != head:
            yield f"certificate: commitments.{name}.ledger is not in the ledger"
            return
    entry = entries[own - 1] if own else {}
    expected = {
        "run": document["provenance"].get("run"),
        "kind": DRAW,
        "alpha": document["plan"]["alpha"],
        "target": plan.target,
        "pool": document["pool"]["hash"],
        "commitment": document_hash(first),
    }
    if own <= before or any(entry[name] != value for name, value in expected.items()):
        yield "certificate: ledger: the run's own entry does not say what it drew"
