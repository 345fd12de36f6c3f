"""The certificate with an expert as the reference: anybody recomputes it, and every change is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from routing.core import (
    ExpertPlan,
    PlanError,
    certify_with_expert,
    expert_certificate,
    frozen_document,
    read_frozen,
)
from routing.core.certificate import canonical_bytes
from routing.core.documents import DocumentError
from routing.core.reference.plan import validate_expert_plan
from routing.core.reference.recheck import recheck_levels
from routing.core.verify import verify
from testbed.settings import plan_of
from tests.core.expert_runs import ExpertRun

pytestmark = [pytest.mark.costly, pytest.mark.long]

Files = tuple[bytes, bytes]
Change = Callable[[dict[str, Any]], object]
TWO = ("0.001", "0.05", "1")
KINDS: list[dict[str, Any]] = [
    {"share": "1"},
    {"share": "0.5"},
    {"share": "0.3", "epsilon": "0.15"},
    {"share": "1", "scored": True},
    {"share": "1", "scored": True, "costs": ("0.0004", "0.002", "0.01", "1")},
    {"share": "0.5", "costs": ("0.01", "1")},
    {"share": "0.5", "epsilon": "0.004"},
    {"share": "0.5", "replaced": 3, "missing": 0.0, "ties": False},
    {"share": "0.5", "missing": 0.2, "epsilon": "0.2"},
    {"share": "0.5", "experts": (("Uma", "1/4"), ("Eve Örtlich", "3/4"))},
]


@pytest.fixture(scope="module")
def half() -> ExpertRun:
    return ExpertRun("0.5", seed=2)


@pytest.fixture(scope="module")
def small() -> ExpertRun:
    """What is changed in many ways."""
    return ExpertRun("0.5", size=50, drawn=45, epsilon="0.3")


@pytest.fixture(scope="module")
def small_scored() -> ExpertRun:
    return ExpertRun("1", size=50, drawn=45, epsilon="0.3", scored=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(value) for value in kind.values()))
@pytest.mark.parametrize("seed", [1, 2])
def test_a_certificate_follows_from_its_files(kind: dict[str, Any], seed: int) -> None:
    run = ExpertRun(seed=seed, **kind)
    certificate, draw = run.files
    assert verify(certificate, draw) == []
    assert json.loads(certificate)["version"] == 5
    assert json.loads(certificate)["result"]["certified"] is (kind.get("epsilon") != "0.004")
    if seed == 1:
        assert ExpertRun(seed=seed, **kind).files == (certificate, draw), (
            "the same labels give the same bytes"
        )


@pytest.mark.parametrize("rule", ["every_score", "split_fixed_sequence"])
def test_the_rule_of_the_plan_says_nothing(rule: str) -> None:
    """Three chains are tested in order, whatever an ordinary run of the plan would do."""
    run = ExpertRun(seed=2, rule=rule)
    certificate, draw = run.files
    assert json.loads(certificate)["plan"]["rule"] == "fixed_sequence"
    assert verify(certificate, draw) == []


@pytest.mark.parametrize("scored", [False, True])
def test_what_was_frozen_and_read_again_certifies_the_same(scored: bool) -> None:
    run = ExpertRun("1", seed=2, scored=scored)
    stored = json.loads(json.dumps(frozen_document(run.run, run.chains, pilot=run.pilot)))
    chains, costs = read_frozen(stored, run.run.plan)
    found = certify_with_expert(
        run.run, chains, run.calibration, pilot_costs=run.pilot_costs, models_costs=costs
    )
    again = expert_certificate(
        run.run, chains, run.calibration, found,
        roster=run.roster, provenance={"entropy": run.entropy, "run": 7},
    )  # fmt: skip
    assert canonical_bytes(again) == run.files[0]
    del stored["slices"]["models_cost"]
    with pytest.raises(DocumentError, match="no cost of each model"):
        read_frozen(stored, run.run.plan)


def test_a_policy_on_every_score_is_counted_in_both_ways() -> None:
    """Errors of the chosen policy, from its chain's tests and from where it sends each asked item."""
    found = ExpertRun("1", seed=2, scored=True).found
    assert found.selection.by_scores is not None
    assert found.counts.observed == found.counts.unlike + found.counts.alike > 0
    with pytest.raises(ValueError, match="the scores of all models"):
        found.sources([0.5], [1])


def test_it_says_what_was_seen_and_what_is_promised(half: ExpertRun) -> None:
    document = json.loads(half.files[0])
    reference, result = document["reference"], document["result"]
    asked = sum(row.asked for row in half.calibration.rows)
    assert reference["expert"] == "Eve Örtlich"
    assert (reference["recheck_share"], reference["weight"]) == ("0.5", 3)
    assert reference["rechecked"] == (asked + 1) // 2
    assert reference["roster"]["shares"] == {"Ada": "1/2", "Bö": "3/10", "Cy": "1/5"}
    levels = recheck_levels(
        pool_size=600, asked=asked, rechecked=reference["rechecked"], weight=3, budget=48,
        level=half.run.level,
    )  # fmt: skip
    assert result["budget"] == 48
    for chain in document["chains"]:
        assert chain["level"] == "1/60"
        assert chain["limits"] == {"s": levels.s, "c_s": levels.wide, "c_0": levels.narrow}
    chosen = next(chain for chain in document["chains"] if chain["name"] == result["chain"])
    policy = chosen["policies"][result["policy"]]
    assert policy["certified"]
    assert (policy["unlike"], policy["alike"]) == (result["unlike_errors"], result["alike_errors"])
    assert policy["observed"] == policy["unlike"] + 3 * policy["alike"] == result["observed_errors"]
    assert result["sentence"].startswith("At most 8 % of the delivered labels of the run's 600 items differ")
    assert "what Eve Örtlich would give, blind" in result["sentence"]
    assert 0 < result["people"]["low"] < 0.03 < result["people"]["high"] < 0.2


def test_what_the_rows_show_is_counted_as_the_sources_deliver(half: ExpertRun) -> None:
    """K_A and K_B of the chosen policy, from the lines of the draw alone."""
    found, rows = half.found, [json.loads(line) for line in half.files[1].splitlines()]
    asked = [row for row in rows if row["asked"]]
    sources = found.sources([row["u"] for row in asked], [row["v"] for row in asked])
    unlike = alike = 0
    for place, (row, source) in enumerate(zip(asked, sources.tolist(), strict=True)):
        first, second, person, expert = *row["answers"], row["person"], row["label"]
        agree = first is not None and first == second == person
        seen = not agree or place < found.rechecked
        assert seen or expert is None
        if source == 0:
            wrong = (first if first is not None else second) not in (None, expert)
        elif source == 1:
            wrong = second is not None and second != expert
        elif source == 2:
            wrong = person is None or person != expert
        else:
            # `checked` delivers what annotator and best model say alike; a missing label counts against it.
            wrong = source == 3 and (person is None or (person == second and person != expert))
        unlike, alike = unlike + (seen and wrong and not agree), alike + (seen and wrong and agree)
    assert (unlike, alike) == (found.counts.unlike, found.counts.alike)


def test_items_in_others_places_are_part_of_the_promise() -> None:
    document = json.loads(ExpertRun(replaced=3).files[0])
    assert "At most 8.5 % of the delivered labels" in document["result"]["sentence"]
    assert "3 items were labelled by others" in document["result"]["sentence"]
    with pytest.raises(ValueError, match="in others' places"):
        _ = ExpertRun(replaced=600).found


# --- forged files ---


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of all numbers, texts and nulls; of lists those in the first, a middle and the last entry."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for index in sorted({0, len(value) // 2, len(value) - 1}):
            yield from leaves(value[index], (*path, index))
    else:
        yield path


def forged(value: object) -> list[object]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value else [1]
    if isinstance(value, float):
        return [value * 1.01 + 1e-6]
    if isinstance(value, str):
        return ["0.06" if value.startswith("0.") else "1/7" if "/" in value else value + "1"]
    return [0]


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: object) -> bytes:
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    there, place[path[-1]] = place[path[-1]], value
    try:
        return canonical_bytes(document)
    finally:
        place[path[-1]] = there


IRRELEVANT = {
    r"pool\.hash": "of the ids of the whole pool, which are not in the files",
    "provenance": "what the application notes beside",
    "models_cost": "what was taken as a model's cost decides which of the certified policies is chosen",
    "people_cost": "the same",
    "pilot_paid": "what the pilot cost, the same",
    r"slices\.ends": "what was frozen before the draw; it shows where it moves an asked item",
    r"^scores\.chains\.\d+\.policies\.\d+\.thresholds": "the same; the result says the chosen one's",
    r"^scores\.chains\.\d+\.name$": "no other chain has it; the result says the chosen one's",
}
"""What need not be noticed, as regular expressions: nothing that is certified rests on it."""


def irrelevant(path: str) -> bool:
    return any(re.search(part, path) for part in IRRELEVANT)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["small", "small_scored"])
def test_every_field_that_is_forged_is_found(name: str, request: pytest.FixtureRequest) -> None:
    run: ExpertRun = request.getfixturevalue(name)
    certificate, draw = run.files
    document = json.loads(certificate)
    document["provenance"] = {"run": 7}
    kept = []
    for path in leaves(document):
        place: Any = document
        for key in path:
            place = place[key]
        if name == "small_scored" and path[0] not in ("scores", "result", "reference"):
            continue  # as without scores
        for value in forged(place):
            try:
                noticed = bool(verify(changed(document, path, value), draw))
            except DocumentError:
                noticed = True
            if not noticed:
                kept.append(".".join(str(key) for key in path))
    assert [path for path in kept if not irrelevant(path)] == []


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["small", "small_scored"])
def test_a_field_that_is_gone_or_of_another_kind_is_found(name: str, request: pytest.FixtureRequest) -> None:
    """In words, whatever stands there."""
    run: ExpertRun = request.getfixturevalue(name)
    certificate, draw = run.files
    document = json.loads(certificate)
    paths = {path[:depth] for path in leaves(document) for depth in range(1, len(path) + 1)}
    own = ("scores",) if name == "small_scored" else ("reference", "plan", "slices", "chains", "result")
    wanted = [path for path in paths if path[0] in own and len(path) < 5]
    assert len(wanted) > 20
    for number, path in enumerate(sorted(wanted, key=str)):
        for value in ((None, {}), ("x", 10**400), (1e308, [[]]), (True, -1))[number % 4]:
            place: Any = document
            for key in path:
                place = place[key]
            if place == value and type(place) is type(value):
                continue
            try:
                noticed = bool(verify(changed(document, path, value), draw))
            except DocumentError:
                noticed = True
            assert noticed or irrelevant(".".join(map(str, path))), path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["reference"].update(rechecked=1), "reference.rechecked"),
        (lambda d: d["reference"].update(weight=2), "limits"),
        (lambda d: d["reference"].update(recheck_share="0.4"), "reference.rechecked"),
        (lambda d: d["reference"].update(expert="Eva"), "result.sentence"),
        (lambda d: d["reference"].update(expert="Ada"), "is the expert and annotates"),
        (lambda d: d["reference"].update(replaced=5), "result.sentence"),
        (lambda d: d["reference"]["roster"].update(salt="0" * 32), "not that of the draw"),
        (lambda d: d["reference"]["roster"]["shares"].update(Ada="3/10", Bö="1/2"), "by the roster"),
        (lambda d: d["chains"].pop(), "which chains there are"),
        (lambda d: d["chains"].reverse(), "which chains there are"),
        (lambda d: d["chains"][0].update(level="1/20"), "chains[0].level"),
        (lambda d: d["chains"][0]["policies"].pop(1), "chains[0]"),
        (lambda d: d["chains"][0]["policies"][3].update(move=[200, 0]), "that there is not"),
        (lambda d: d["chains"][0]["policies"][3].update(move=[0, 5]), "that there is not"),
        (lambda d: d["plan"].update(rule="multi_chain"), "plan.rule"),
        (lambda d: d["plan"].update(m=259), "draw"),
        (lambda d: d["result"]["people"].update(high=0.01), "result.people.high"),
    ],
)
def test_what_does_not_agree_is_told(half: ExpertRun, change: Change, told: str) -> None:
    document = json.loads(half.files[0])
    change(document)
    lines = verify(canonical_bytes(document), half.files[1])
    assert any(told in line for line in lines), lines[:5]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.pop("reference"), "'reference' is missing"),
        (lambda d: d["reference"].update(kind="pope"), "'pope' is unknown"),
        (lambda d: d["reference"].update(weight=0), "below 1"),
        (lambda d: d["reference"].update(weight=10**30), "no whole numbers from 0"),
        (lambda d: d["reference"].update(recheck_share="2"), "above 0 and at most 1"),
        (lambda d: d["reference"].update(recheck_share="1e-9"), "no text of a decimal"),
        (lambda d: d["reference"].update(recheck_share="0.0000001"), "recheck nothing"),
        (lambda d: d["reference"].update(expert=" "), "names her"),
        (lambda d: d["reference"].update(expert="x" * 10**6), "names her"),
        (lambda d: d["reference"].update(expert_cost="0"), "give a cost above 0"),
        (lambda d: d["reference"]["roster"].update(shares={}), "together 1"),
        (lambda d: d["reference"]["roster"]["shares"].update(Ada="2/4"), "lowest terms"),
        (lambda d: d["reference"]["roster"]["shares"].update(Ada="1/0"), "no share"),
        (lambda d: d["reference"]["roster"]["shares"].update({f"n{k}": "1/2" for k in range(1500)}), "1000"),
        (lambda d: d["reference"]["roster"]["shares"].update({"\ud800": "1/2", "Ada": "1/3"}), "together 1"),
        (lambda d: d["slices"]["sizes"].__setitem__(0, 4), "as many items as the pool"),
        (lambda d: d["slices"]["sizes"].__setitem__(0, 2**64), "slices"),
        (lambda d: d["slices"]["rho"].__setitem__(0, 0.0), "rank"),
        (lambda d: d["slices"]["models_cost"].pop(), "no cost of each model"),
        (lambda d: d["slices"]["models_cost"][0].__setitem__(0, 1e300), "no cost of each model"),
        (lambda d: d["chains"][0]["policies"][0].update(move=[0, 0]), "everything at the expert"),
        (lambda d: d["chains"][0]["policies"][1].update(move=[0, 1.0]), "no move"),
        (lambda d: d.update(version=3), "names an annotator"),
        (lambda d: d["plan"].update(target="pool"), "one delivered data set"),
        (lambda d: d["plan"].update(pool_size=10**12), "too large"),
    ],
)
def test_a_malformed_certificate_is_refused_in_words(half: ExpertRun, change: Change, told: str) -> None:
    document = json.loads(half.files[0])
    change(document)
    data = json.dumps(document).encode()
    with pytest.raises(DocumentError, match=told):
        verify(data, half.files[1])


def test_numbers_that_would_take_hours_are_refused_at_once(half: ExpertRun) -> None:
    """Epsilon and pool are what the time to find the critical values grows with."""
    document = json.loads(half.files[0])
    document["plan"].update(pool_size=90_000_000, epsilon="0.9", m=80_000_000)
    with pytest.raises(DocumentError, match="takes hours"):
        verify(canonical_bytes(document), half.files[1])
    run = ExpertPlan(plan_of(10**7, 10**6), Decimal(3))
    with pytest.raises(PlanError, match="r = 1"):
        validate_expert_plan(run)
    validate_expert_plan(ExpertPlan(plan_of(10**7, 10**6), Decimal(3), Decimal(1)))


def test_a_draw_that_lacks_millions_of_rows_is_told_in_few_lines(half: ExpertRun) -> None:
    document = json.loads(half.files[0])
    document["reference"].update(recheck_share="1", weight=1)
    document["plan"].update(pool_size=2_000_000, m=1_900_000)
    document["slices"]["sizes"][0] += 2_000_000 - 600
    lines = verify(canonical_bytes(document), half.files[1])
    assert "draw: it has 260 rows, the plan draws 1900000" in lines
    assert len(lines) < 1_000


def test_something_nested_deeply_is_refused(half: ExpertRun) -> None:
    certificate = half.files[0].replace(b'"run":7', b'"run":' + b"[" * 980 + b"]" * 980)
    with pytest.raises(DocumentError, match=r"nested too deeply|no JSON"):
        verify(certificate, half.files[1])
