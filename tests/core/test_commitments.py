"""A certificate with commitments, made with the core alone: it verifies, and what is changed is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from routing.core.calibration import Calibration
from routing.core.certificate import canonical_bytes, certificate_document, document_hash, draw_line
from routing.core.certify import certify
from routing.core.commitment import (
    NONCE,
    SYSTEM,
    before_draw,
    before_labels,
    blank_line,
    drawn_entropy,
    fixed_chains,
    item_line,
    later_answers,
    lines_document,
)
from routing.core.documents import DocumentError, parse_document, parse_plan, parse_row
from routing.core.ledger import DRAW, FINAL_AUDIT, broken_links, ledger_entry
from routing.core.plan import Plan
from routing.core.sampling import draw_calibration, pool_hash
from routing.core.verify import verify
from tests.core.certificates import DRAWN, ENTROPY, IDS, SIZE, make_run
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly

PROVENANCE = {"project": "digits", "run": 3, "sources": [{"name": "A"}, {"name": "B"}]}


def entry(number: int, run: int, previous: str, **changes: Any) -> dict[str, Any]:
    settings = {
        "kind": DRAW,
        "alpha": Decimal("0.05"),
        "target": "dataset",
        "pool": pool_hash(IDS),
        "commitment": "",
    }
    return ledger_entry(number=number, run=run, previous=previous, **{**settings, **changes})


def committed(
    target: str = "dataset", *, kind: str = SYSTEM, spent: str = "0.05", late: bool = False
) -> tuple[dict[str, Any], Calibration, Plan]:
    """A certificate of a run on whose items another one has drawn before, and its draw."""
    plan = replace(plan_of(SIZE, DRAWN, target=target, epsilon="0.05"), alpha_spent=Decimal(spent))
    chains, _, calibration = make_run(plan)
    certification = certify(plan, chains, calibration)
    alone = certificate_document(
        plan, calibration, certification, provenance={**PROVENANCE, "entropy": ENTROPY}
    )
    population = target == "population"
    before = entry(1, 1, "")
    fixed = fixed_chains(alone, plan.rule)
    pilot = lines_document([item_line("p", "0" * 64, None, [None, ("a", None)])])
    first = before_draw(
        project="digits",
        run=3,
        plan=plan,
        entropy=ENTROPY,
        pool_hash=pool_hash(IDS),
        sources=PROVENANCE["sources"],  # type: ignore[arg-type]
        items={"count": SIZE, "root": "0" * 64},
        pilot=None if population else pilot,
        chains=None if population else fixed,
        reference=None,
        ledger={"entries": 1, "head": before["sha256"]},
        draw_from={"kind": kind},
    )
    own = entry(2, 3, before["sha256"], target=target, commitment=document_hash(first))
    randomness = {"kind": kind, "value": None if kind == SYSTEM else "heads, they said"}
    rows = list(calibration.rows)
    if kind != SYSTEM:
        rows = drawn_again(plan, rows, drawn_entropy(ENTROPY, document_hash(first), randomness))
        calibration = Calibration.from_rows(rows)
        certification = certify(plan, chains, calibration)
    second = before_labels(
        first,
        randomness=randomness,
        rows=rows,
        pilot=pilot if population else None,
        chains=fixed if population else None,
        rechecked=None,
        ledger={"entries": 2, "head": own["sha256"]},
    )
    provenance = {
        **PROVENANCE,
        "entropy": ENTROPY,
        "pool_hash": pool_hash(IDS),
        "commitments": {"before_draw": first, "before_labels": second},
        "ledger": [before, own],
    }
    return certificate_document(plan, calibration, certification, provenance=provenance), calibration, plan


def drawn_again(plan: Plan, rows: list[Any], number: int) -> list[Any]:
    """Rows of another draw, with the labels and answers of the first in their order."""
    drawn = draw_calibration(pool_size=SIZE, m=plan.m, p=plan.p, entropy=number)
    by_id = {row.item_id: row for row in rows}
    asked_about = [row for row in rows if row.asked]
    found = []
    for order, (position, asked) in enumerate(
        zip(drawn.positions.tolist(), drawn.asked.tolist(), strict=True)
    ):
        like = asked_about[order % len(asked_about)]
        item = IDS[position]
        key = by_id.get(item, like)
        found.append(
            replace(
                like,
                order=order,
                position=position,
                item_id=item,
                asked=asked,
                u=key.u,
                v=int(tie_break(item)),
                label=like.label if asked else None,
                answers=like.answers if asked else (),
            )
        )
    return found


def tie_break(item: str) -> int:
    from routing.core.sampling import make_salt, tie_breaks

    return int(tie_breaks(make_salt(ENTROPY), [item])[0])


def files(document: dict[str, Any], calibration: Calibration) -> tuple[bytes, bytes]:
    return (
        canonical_bytes(document),
        "".join(draw_line(row) + "\n" for row in calibration.rows).encode(),
    )


@pytest.mark.parametrize("kind", [SYSTEM, NONCE])
@pytest.mark.parametrize("target", ["dataset", "pool", "population"])
def test_a_certificate_with_commitments_verifies_and_states_the_level_left(target: str, kind: str) -> None:
    document, calibration, _ = committed(target, kind=kind)
    assert document["version"] == 6
    assert verify(*files(document, calibration)) == []
    if document["result"]["certified"]:
        assert "with probability at least 90 %" in document["result"]["sentence"]
        assert "0.05 was spent by earlier draws" in document["result"]["sentence"]


def _set(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return change


FIRST, SECOND = ("commitments", "before_draw"), ("commitments", "before_labels")
CHANGES = {
    "another project": _set(*FIRST, "project", value="x"),
    "another plan": _set(*FIRST, "plan", "m", value=7),
    "another entropy": _set(*FIRST, "entropy", value="7"),
    "another pool": _set(*FIRST, "pool", "hash", value="7"),
    "other sources": _set(*FIRST, "sources", value=[]),
    "another reference": _set(*FIRST, "reference", value={"kind": "settled"}),
    "other chains": _set(*FIRST, "chains", value="0" * 64),
    "fewer items": _set(*FIRST, "items", "count", value=1),
    "no pilot": _set(*FIRST, "pilot", value=None),
    "another run": _set(*SECOND, "run", value=1),
    "another first": _set(*SECOND, "before_draw", value="0" * 64),
    "another draw": _set(*SECOND, "draw", "asked", value=1),
    "chains in the second": _set(*SECOND, "chains", value="0" * 64),
    "rechecked": _set(*SECOND, "rechecked", value=3),
    "pilot in the second": _set(*SECOND, "pilot", value={"count": 0, "root": ""}),
    "another source of the draw": _set(*SECOND, "randomness", value={"kind": NONCE, "value": "text"}),
    "a head that is none": _set(*SECOND, "ledger", "head", value="0" * 64),
    "a place that is none": _set(*SECOND, "ledger", "entries", value=9),
    "own before": _set(*SECOND, "ledger", value={"entries": 0, "head": ""}),
    "an unlinked entry": _set("ledger", 1, "previous", value=""),
    "another alpha": _set("ledger", 1, "alpha", value="0.01"),
    "an entry of another kind": _set("ledger", 1, "kind", value="gift"),
    "no entry": _set("ledger", 1, value={}),
    "nothing spent": _set("plan", "alpha_spent", value="0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_is_changed_is_found(change: Callable[[Any], None]) -> None:
    document, calibration, _ = committed()
    changed = deepcopy(document)
    change(changed)
    assert verify(*files(changed, calibration))


UNREADABLE = {
    "none": _set("commitments", value=None),
    "one": _set("commitments", value={"before_draw": {}}),
    "another format": _set(*FIRST, "format", value="x"),
    "another number": _set(*SECOND, "number", value=1),
    "no randomness": _set(*SECOND, "randomness", value=None),
    "an unknown kind": _set(*SECOND, "randomness", value={"kind": "dice", "value": "6"}),
    "a value of the system": _set(*SECOND, "randomness", value={"kind": SYSTEM, "value": "6"}),
    "no ledger": _set(*FIRST, "ledger", value=None),
    "nowhere to draw from": _set(*FIRST, "draw_from", value=None),
}


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_are_no_commitments_is_refused(change: Callable[[Any], None]) -> None:
    document, calibration, _ = committed()
    change(document)
    with pytest.raises(DocumentError, match="commitments"):
        verify(*files(document, calibration))


def test_answers_that_came_later_are_named_and_only_where_a_rule_asks_then() -> None:
    _, calibration, _ = committed()
    row = next(row for row in calibration.rows if row.asked)
    before = replace(row, answers=(row.answers[0], None))
    assert later_answers(row, before) == (2,)
    assert later_answers(row, row) == ()
    late = replace(row, later=(2,))
    assert blank_line(late) == blank_line(before)
    assert parse_row(draw_line(late), 1) == late
    with pytest.raises(ValueError, match="is not what was committed to"):
        later_answers(row, replace(row, u=row.u / 2))
    document, calibration, _ = committed()
    rows = [late if one.order == row.order else one for one in calibration.rows]
    found = verify(*files(document, Calibration.from_rows(rows)))
    assert any("the rule asks nobody then" in line for line in found)


def test_a_line_that_says_so_needs_commitments() -> None:
    document, calibration, _ = committed()
    for name in ("commitments", "ledger"):
        del document[name]
    document["version"] = 3
    row = next(row for row in calibration.rows if row.asked)
    rows = [replace(one, later=(2,)) if one is row else one for one in calibration.rows]
    with pytest.raises(DocumentError, match="there are no commitments"):
        verify(*files(document, Calibration.from_rows(rows)))


@pytest.mark.parametrize("later", [[0], [3], [2, 1], [1, 1], ["2"], []])
def test_a_list_of_later_models_that_is_none_is_refused(later: list[Any]) -> None:
    _, calibration, _ = committed()
    line = json.loads(draw_line(next(row for row in calibration.rows if row.asked))) | {"later": later}
    with pytest.raises(DocumentError, match="later"):
        parse_row(json.dumps(line), 1)


def test_the_ledger_is_linked_by_its_hashes() -> None:
    first = entry(1, 1, "")
    second = entry(2, 1, first["sha256"], kind=FINAL_AUDIT)
    assert list(broken_links([first, second])) == []
    assert list(broken_links([])) == []
    for entries, words in (
        ([second], "number"),
        ([first, second | {"previous": "0" * 64}], "does not follow"),
        ([first | {"alpha": "0.01"}, second], "does not have the hash"),
        ([first, {}], "is no entry"),
    ):
        assert any(words in line for line in broken_links(entries)), words


def test_what_was_spent_stands_in_the_plan() -> None:
    document, _, plan = committed(spent="0.125")
    assert document["plan"]["alpha_spent"] == "0.125"
    assert parse_plan(parse_document(canonical_bytes(document))).alpha_spent == plan.alpha_spent
    assert "with probability at least 82.5 %" in document["result"]["sentence"]


def test_a_level_of_which_nothing_is_left_says_so() -> None:
    document, calibration, _ = committed(spent="0.99")
    assert "with probability at least 0 % over the random draw (alpha = 1)" in document["result"]["sentence"]
    assert verify(*files(document, calibration)) == []
