"""A run of `every_score` from its draw to a certificate that anybody can recompute."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import canonical_bytes, draw_line
from routing.core.documents import DocumentError
from routing.core.every_score.build import ScoreChains, build_score_chains
from routing.core.every_score.certify import ScoreCertification, asked_of, certify_every_score
from routing.core.every_score.documents import chains_document, read_score_chains, score_certificate
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.select import AnswersMissingError, PilotCosts
from routing.core.keys import Key
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from routing.core.sampling import draw_calibration, draw_pilot, make_salt, pool_hash, tie_breaks
from routing.core.verify import verify
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly
SIZE, DRAWN, ENTROPY = 900, 300, 2**71 + 5
IDS = tuple(f"item {k} é" for k in range(SIZE))
CHEAP, DEAR = ("0.0004", "0.005", "1"), ("0.03", "0.15", "1")
TRUTH, WRONG = "yes", "no"


@dataclass
class Run:
    """What a run of the product has stored when its labels are locked."""

    plan: Plan
    chains: ScoreChains
    calibration: Calibration
    pilot: PilotCosts
    answers: list[list[str | None]]
    keys: list[list[Key | None]]

    def call(self, model: int, rows: np.ndarray) -> None:
        """The model answers about some of the asked items."""
        asked = [row for row in self.calibration.rows if row.asked]
        chosen = {asked[index].order for index in rows.tolist()}
        changed = []
        for row in self.calibration.rows:
            if row.order in chosen:
                called = tuple(k == model or was for k, was in enumerate(row.called))
                said, keys = self.answers[row.position], self.keys[row.position]
                answers = tuple(one if yes else None for one, yes in zip(said, called, strict=True))
                own = tuple(key if yes else None for key, yes in zip(keys, called, strict=True))
                row = replace(row, called=called, answers=answers, own=own[1:])
            changed.append(row)
        self.calibration = Calibration(tuple(changed))

    def certify(self) -> ScoreCertification:
        """Calls are made as they are needed."""
        while True:
            try:
                return certify_every_score(self.plan, self.chains, self.calibration, pilot=self.pilot)
            except AnswersMissingError as error:
                for model, rows in error.missing.calls:
                    self.call(model, rows)

    def files(self) -> tuple[bytes, bytes]:
        found = self.certify()
        provenance = {"entropy": ENTROPY, "pool_hash": pool_hash(IDS), "run": 7}
        document = score_certificate(
            self.plan, self.chains, self.calibration, found, pilot=self.pilot, provenance=provenance
        )
        lines = "".join(draw_line(row) + "\n" for row in self.calibration.rows)
        return canonical_bytes(document), lines.encode()


def make_run(costs: tuple[str, ...] = CHEAP, *, blank: bool = True, **changes: Any) -> Run:
    plan = plan_of(SIZE, DRAWN, costs=costs, rule="every_score", **changes)
    models, salt, rng = len(costs) - 1, make_salt(ENTROPY), np.random.default_rng(5)
    u = rng.random((SIZE, models))
    wrong = rng.random((SIZE, models)) < 0.3 * u ** (1 + np.arange(models))
    usable = rng.random((SIZE, models)) > 0.05
    said = np.where(usable, np.where(wrong, WRONG, TRUTH).astype(object), None)
    answers: list[list[str | None]] = said.tolist()
    v = np.column_stack([tie_breaks(salt, IDS, model=k + 1) for k in range(models)])
    keys = [
        [Key(float(u[i, k]), int(v[i, k])) if usable[i, k] else None for k in range(models)]
        for i in range(SIZE)
    ]
    draw = draw_calibration(pool_size=SIZE, m=DRAWN, p=plan.p, entropy=ENTROPY)
    reference, exclude = None, None
    if plan.target == "population":
        reference, exclude = ~np.isin(np.arange(SIZE), draw.positions), draw.positions
    at = draw_pilot(pool_size=SIZE, size=plan.pilot, entropy=ENTROPY, exclude=exclude)
    own = np.where(usable, u, np.nan)
    pilot = PilotData.of(np.where(usable[at, 0], u[at, 0], 1), v[at, 0], [answers[i] for i in at], own[at])
    first = np.where(usable[:, 0], u[:, 0], 1.0)
    chains = build_score_chains(
        plan, u=first, v=v[:, 0], usable=usable[:, 0], pilot=pilot, reference=reference
    )
    items = ScoredItems.of(u, v, usable, scored=chains.scored)
    outside = at[~np.isin(at, draw.positions[draw.asked])]
    rows = [
        CalibrationRow(
            item_id=IDS[position],
            position=position,
            order=order,
            asked=asked,
            p=plan.p,
            u=float(first[position]),
            v=int(v[position, 0]),
            label=(None if blank and order == 3 else TRUTH) if asked else None,
            answers=(answers[position][0], *(None,) * (models - 1)) if asked else (),
            own=(None,) * (models - 1) if asked else (),
            called=(True, *(False,) * (models - 1)) if asked else (),
        )
        for order, (position, asked) in enumerate(
            zip(draw.positions.tolist(), draw.asked.tolist(), strict=True)
        )
    ]
    costs_of_pilot = PilotCosts.of(plan, chains, items.rows(outside))
    return Run(plan, chains, Calibration.from_rows(rows), costs_of_pilot, answers, keys)


@pytest.mark.parametrize(
    "changes",
    [
        {"costs": CHEAP},
        {"costs": DEAR},
        {"costs": ("0.01", "1")},
        {"costs": ("0.0004", "0.002", "0.01", "1")},
        {"costs": CHEAP, "target": "pool"},
        {"costs": DEAR, "target": "population", "blank": False},
        {"costs": CHEAP, "bound": "betting_upper", "epsilon": "0.1"},
    ],
    ids=lambda changes: "-".join(str(value) for value in changes.values()),
)
def test_a_certificate_follows_from_its_files(changes: dict[str, Any]) -> None:
    certificate, draw = make_run(**changes).files()
    assert json.loads(certificate)["version"] == 4
    assert json.loads(certificate)["result"]["certified"]
    assert verify(certificate, draw) == []
    assert make_run(**changes).files() == (certificate, draw), "the same labels give the same bytes"


def test_a_dear_model_is_called_on_the_reached_items_alone() -> None:
    run = make_run(DEAR)
    found = run.certify()
    called = np.array([row.called[1] for row in run.calibration.rows if row.asked])
    assert np.array_equal(called, found.selection.called[:, 1])
    assert 0 < called.sum() < len(called)
    cheap = make_run(CHEAP)
    cheap.certify()
    assert all(row.called[1] for row in cheap.calibration.rows if row.asked)


def test_expected_costs_count_everything_once() -> None:
    """Source 1, the pilot, the calls of the tests, people on asked items, the policy on the rest."""
    run = make_run(DEAR)
    found = run.certify()
    asked = asked_of(run.plan, run.chains, run.calibration)
    policy, n, g = found.selection.chain.only(found.selection.index), asked.asked, run.pilot.items
    calls = sum(1 for row in run.calibration.rows if row.asked and row.called[1])
    # Those of the pilot that people are asked about, too: most were not called again.
    calls += (run.plan.pilot - g) * (1 - calls / n)
    assert run.plan.pilot > g
    both = found.selection.costs[found.selection.number][found.selection.index]
    models = float(policy.paid(asked.items, [0.03, 0.15, 0.0])[0]) / n
    expected = 900 * 0.03 + 0.15 * g + 0.15 * calls + n + (900 - n) * both - g * models
    assert found.expected.net_cost == pytest.approx(expected)
    assert found.expected.net_saving == pytest.approx(1 - expected / 900)
    assert 0 < found.expected.routing_saving < 1


def test_where_nothing_passes_people_label_everything_and_the_reason_is_told() -> None:
    run = make_run(CHEAP, epsilon="0.002")
    found = run.certify()
    assert not found.certified
    assert set(found.thresholds) == {None}
    assert found.pointwise_upper_bound is None
    assert "people label everything" in found.sentence
    assert f"{found.smallest_n}" in found.reason
    assert verify(*run.files()) == []


def test_the_least_number_of_labels_is_the_least_that_certifies() -> None:
    """One fewer, all right, and no model passes."""
    least = make_run().certify().smallest_n
    for asked, certifies in ((least, True), (least - 1, False)):
        plan = plan_of(SIZE, asked, costs=("0.01", "1"), rule="every_score", p=1)
        chains = build_score_chains(plan, u=np.arange(SIZE) / SIZE, v=np.arange(SIZE))
        rows = [
            CalibrationRow(f"{k}", k, k, True, plan.p, k / SIZE, k, TRUTH, (TRUTH,)) for k in range(asked)
        ]
        found = certify_every_score(plan, chains, Calibration.from_rows(rows))
        assert found.smallest_n == least
        assert found.certified == certifies


def test_frozen_chains_are_stored_and_read_again_exactly() -> None:
    for costs in (CHEAP, DEAR, ("0.01", "1")):
        chains = make_run(costs).chains
        again = read_score_chains(json.loads(json.dumps(chains_document(chains))))
        assert again.scored == chains.scored
        assert again.lazy == chains.lazy
        for one, other in zip(chains.chains, again.chains, strict=True):
            assert (one.name, one.shape, one.models, one.share) == (
                other.name,
                other.shape,
                other.models,
                other.share,
            )
            assert np.array_equal(one.thresholds, other.thresholds)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["chains"][1].update(share="2/5"), "not those of the rule"),
        (lambda d: d["chains"].pop(2), "not those of the rule"),
        (lambda d: d["chains"][1].update(share=None), "not those of the rule"),
        (lambda d: d.update(chains=d["chains"][:1]), "not those of the rule"),
        (lambda d: d.update(chains=d["chains"][1:2]), "not those of the rule"),
        (lambda d: d["chains"][1].update(models=[2]), "not those of the rule"),
        (lambda d: d["chains"][0].update(level="1/20"), "chains[0].level"),
        (lambda d: d["chains"][1].update(attained="0/1"), "chains[1].attained"),
        (lambda d: d["chains"][0]["policies"][9].update(observed=99), "observed"),
        (lambda d: d["chains"][0]["policies"][-1].update(certified=True), "certified"),
        (lambda d: d["result"].update(policy=200), "result.policy"),
        (lambda d: d["result"]["thresholds"].__setitem__(0, [1.0, 5]), "result.thresholds"),
        (lambda d: d.update(lazy=True), "dear"),
        (lambda d: d.update(scored=[True, False]), "score of a model that has none"),
        (lambda d: d["chains"][0].update(reached=3), "reached"),
        (lambda d: d["chains"][0]["policies"].reverse(), "people alone"),
    ],
)
def test_a_change_of_the_certificate_is_found(change: Change, told: str) -> None:
    certificate, draw = make_run().files()
    document = json.loads(certificate)
    change(document)
    assert any(told in line for line in verify(canonical_bytes(document), draw))


def test_a_change_of_the_draw_is_found() -> None:
    certificate, draw = make_run().files()
    lines = draw.decode().splitlines()
    row = json.loads(lines[0])
    assert row["asked"]
    row["own"][0][1] += 1
    changed = ("\n".join([json.dumps(row), *lines[1:]]) + "\n").encode()
    assert any("tie-break" in line and "model 2" in line for line in verify(certificate, changed))
    row = json.loads(lines[0])
    row["called"][1] = False
    changed = ("\n".join([json.dumps(row), *lines[1:]]) + "\n").encode()
    assert any("has not been asked" in line for line in verify(certificate, changed))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("scored"),
        lambda d: d.update(lazy=1),
        lambda d: d["pilot"].update(items=-1),
        lambda d: d["chains"][0]["policies"][0].update(pilot_paid="1"),
        lambda d: d["chains"][0].update(models=["1"]),
        lambda d: d["chains"][1].update(share="6/20"),
        lambda d: d["chains"][1].update(share="1e999999999"),
        lambda d: d["chains"][0]["policies"][-2]["thresholds"].__setitem__(0, [1.5, 0]),
        lambda d: d["chains"][0]["policies"][0]["thresholds"].__setitem__(0, [-2.0, 0]),
        lambda d: d["pilot"].update(items=10**400),
        lambda d: d["chains"][0]["policies"][9].update(pilot_paid=10**400),
        lambda d: d["chains"][0].update(policies=[]),
        lambda d: d.update(version=3),
        lambda d: d["plan"].update(rule="fixed_sequence"),
    ],
)
def test_a_malformed_certificate_is_refused(change: Change) -> None:
    certificate, draw = make_run().files()
    document = json.loads(certificate)
    change(document)
    with pytest.raises(DocumentError):
        verify(canonical_bytes(document), draw)


def test_a_row_that_does_not_say_which_models_were_asked_is_refused() -> None:
    document, lines = make_run().files()
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        row.pop("called", None)
    without = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with pytest.raises(DocumentError, match="which models were asked"):
        verify(document, without)


def test_a_row_without_the_scores_of_later_models_is_named() -> None:
    run = make_run()
    rows = [replace(row, own=()) for row in run.calibration.rows]
    with pytest.raises(ValueError, match="0 scores"):
        certify_every_score(run.plan, run.chains, Calibration(tuple(rows)), pilot=run.pilot)


@pytest.mark.parametrize("costs", [CHEAP, DEAR, ("0.0004", "0.002", "0.01", "1")])
def test_no_chain_of_the_rule_may_be_left_out(costs: tuple[str, ...]) -> None:
    """Who drops chains afterwards would test the one that he likes at the level of all of them."""
    run = make_run(costs)
    assert run.chains.fault(run.plan) == ""
    for number in range(len(run.chains.chains)):
        others = tuple(chain for place, chain in enumerate(run.chains.chains) if place != number)
        for chains in (others, (replace(run.chains.chains[number], share=None),)):
            assert "not those of the rule" in replace(run.chains, chains=chains).fault(run.plan)


def no_such_pilot(document: dict[str, Any]) -> dict[str, Any]:
    """A pilot on which the chosen policy called a model and people about more than there is."""
    chosen = document["result"]
    chain = next(chain for chain in document["chains"] if chain["name"] == chosen["chain"])
    chain["policies"][chosen["policy"]]["pilot_paid"] = 1e6
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["pilot"].update(items=d["plan"]["pilot_size"] + 1),
        lambda d: d["chains"][0]["policies"][0].update(pilot_paid=0.0),
        no_such_pilot,
    ],
)
def test_a_pilot_that_cannot_have_cost_this_is_refused(change: Change) -> None:
    """All lower figures are believed: the pilot's answers are not part of the files."""
    certificate, draw = make_run().files()
    document = json.loads(certificate)
    change(document)
    assert any("pilot" in line and "tested" in line for line in verify(canonical_bytes(document), draw))
