"""A certificate of several experts who share the work: whose an item is, is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from routing.core import PlanError
from routing.core.certificate import canonical_bytes
from routing.core.correctness import left_open_by
from routing.core.documents import DocumentError
from routing.core.reference.plan import validate_expert_plan
from routing.core.verify import verify
from tests.core.expert_runs import ExpertRun

pytestmark = pytest.mark.costly

Change = Callable[[dict[str, Any]], object]


def test_of_several_experts_it_names_all_and_says_that_nobody_compares_them() -> None:
    half = ExpertRun("0.5", seed=2)
    shared = ExpertRun("0.5", seed=2, experts=(("Uma", "1/4"), ("Eve Örtlich", "3/4")))
    document, alone = (json.loads(run.files[0]) for run in (shared, half))
    reference, result = document["reference"], document["result"]
    assert reference.pop("experts") == {"Eve Örtlich": "3/4", "Uma": "1/4"}
    assert reference == {name: value for name, value in alone["reference"].items() if name != "expert"}
    sentence = result.pop("sentence")
    assert "what Eve Örtlich or Uma, by a fixed roster, would give, blind (epsilon" in sentence
    assert "how much they differ among themselves is not known" in sentence
    assert "among themselves" not in alone["result"].pop("sentence")
    assert result == alone["result"], "who is right changes the words alone"
    assert "no two of them label the same item" in left_open_by(json.loads(shared.files[0]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.update(experts={"Eve": "1/2", "Uma": "1/3"}), "together 1"),
        (lambda one: one.update(experts={"Eve": "1/1"}), "shares the work of the expert with nobody"),
        (lambda one: one.update(experts={"Ada": "1/2", "Uma": "1/2"}), "is the expert and annotates"),
        (lambda one: one.update(experts={"Eve": "1/2", "Zoe": "1/2"}), "result.sentence"),
        (lambda one: one.update(experts=["Eve", "Uma"]), "no object"),
        (lambda one: one.update(expert="Eve"), "not part of a certificate"),
    ],
)
def test_other_experts_than_the_certified_ones_are_found(change: Change, words: str) -> None:
    certificate, draw = ExpertRun(
        "0.5", size=50, drawn=45, epsilon="0.3", experts=(("Eve", "1/2"), ("Uma", "1/2"))
    ).files
    document = json.loads(certificate)
    change(document["reference"])
    try:
        found = verify(canonical_bytes(document), draw)
    except DocumentError as error:
        found = [str(error)]
    assert any(words in line for line in found)


@pytest.mark.parametrize(
    ("experts", "words"),
    [
        ((("Eve", "1/2"), ("Eve", "1/2")), "Eve is named twice"),
        ((("Eve", "1/2"), ("Uma", "1/3")), "add up to 0.8333"),
        ((("Eve", "1/1"), ("Uma", "0/1")), "must be above 0"),
        ((("Eve", "1/2"), ("U\nma", "1/2")), "in one line"),
        (tuple((f"E{number:03}", "1/50") for number in range(50)), "at most 200 characters"),
    ],
)
def test_experts_who_cannot_share_the_work_are_refused(
    experts: tuple[tuple[str, str], ...], words: str
) -> None:
    with pytest.raises(PlanError, match=words) as refused:
        validate_expert_plan(ExpertRun(experts=experts).run)
    assert refused.value.field == "expert"
