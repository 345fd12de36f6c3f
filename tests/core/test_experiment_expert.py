"""An experiment with people who err: a table with an annotator's and an expert's column."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from routing.core.experiment.measure import Terms
from routing.core.experiment.reading import read_table
from routing.core.experiment.run import list_cases, run
from routing.core.experiment.settings import ExperimentError, Settings
from routing.core.experiment.split import Split
from routing.core.experiment.table import People, Table, TableError
from routing.core.experiment.with_expert import WITH_EXPERT, ExpertDecision, measure_with_expert
from testbed.known_truth import SETTINGS
from testbed.people import SHARED, HumanDraw
from tests.core.test_experiment_table import table_of

pytestmark = pytest.mark.costly

GOOD = (
    "human1,expert,pred1,conf1,pred2,conf2,cost1,cost2,cost_h,cost_e\n"
    "7,7,7,0.9,8,0.6,1,2,8,20\n"
    "5,4,4,0.5,5,0.8,1,2,8,20\n"
    "6,6,6,0.2,6,1,1,2,8,20\n"
)
WITHOUT = GOOD.replace("human1,expert", "other,y_true")


def world(error: float, kind: str, *, size: int = 3000, seed: int = 0) -> Table:
    """The world `power` of the simulations as a table."""
    draw = HumanDraw(SETTINGS["power"], error, kind, np.random.default_rng(seed))
    costs = np.array([float(cost) for cost in draw.plan.costs])
    answers, person, u = draw.answers[:size], draw.person[:size], draw.world.u[:size]
    return Table(
        name="power",
        numbers=(1, 2),
        loss=(answers != person[:, None]).astype(np.float64),
        usable=np.ones((size, 2), dtype=np.bool_),
        u=np.column_stack([u, np.full(size, np.nan)]),
        costs=np.tile(costs, (size, 1)),
        answers=answers.astype(str).astype(object),
        people=People(
            loss=(person != 0).astype(np.float64),
            models=(answers != 0).astype(np.float64),
            expert_cost=np.full(size, 3 * costs[-1]),
        ),
    )


def test_both_columns_are_read_and_every_loss_is_against_the_one_it_should_be(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD)
    assert table.people is not None
    assert table.loss.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert table.people.models.tolist() == [[0, 1], [0, 1], [0, 0]]
    assert table.people.loss.tolist() == [0, 1, 0]
    assert table.people.expert_cost.tolist() == [20, 20, 20]
    assert table.true_loss.tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert table.only([1]).true_loss.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert table_of(tmp_path, GOOD.replace("cost_e", "more")).people.expert_cost.tolist() == [24] * 3
    assert table_of(tmp_path, GOOD, expert_cost=9.0).people.expert_cost.tolist() == [9] * 3
    assert table_of(tmp_path, GOOD.replace("expert", "y_true")).people is not None
    assert table_of(tmp_path, WITHOUT).people is None


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (GOOD.replace("5,4,4", ",4,4"), {}, "row 2, column 'human1': the cell is blank"),
        (GOOD.replace("5,4,4", "5,,4"), {}, "row 2, column 'expert': the cell is blank"),
        (GOOD.replace("human1", "other"), {}, "no column 'y_true'"),
        (GOOD.replace("human1", "y_true"), {}, "'expert' needs a column 'human1'"),
        (WITHOUT, {"expert_cost": 3.0}, "--expert-cost needs a column 'human1'"),
        (GOOD, {"expert_cost": 0.0}, "expert must be above 0"),
        (GOOD.replace("pred", "loss").replace(",8,0.6", ",0,0.6"), {"loss_bound": 9.0}, "give pred1"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, text: str, options: dict[str, float], words: str
) -> None:
    with pytest.raises(TableError, match=words):
        table_of(tmp_path, text, **options)


def test_everything_paid_and_every_difference_is_counted_item_by_item() -> None:
    table = world(0.2, SHARED, size=300)
    people = table.people
    assert people is not None
    table.usable[::7, 0] = False
    table.usable[::5, 1] = False
    rng = np.random.default_rng(3)
    split = Split(table, m=120, p=0.8, seed=np.random.SeedSequence(1))
    sources = rng.integers(0, 5, 300)
    alike = ((table.loss == 0) & table.usable).all(axis=1)[split.asked_items]
    seen = ~alike | (np.arange(len(alike)) < 40)
    found = measure_with_expert(split, ExpertDecision(sources, seen), Terms("dataset", 0.1, 30))
    asked = dict(zip(split.asked_items.tolist(), seen.tolist(), strict=True))
    pilot = set(split.pilot_items("dataset", 30).tolist())
    errors = paid = labelled = 0.0
    for item in range(300):
        usable, said = table.usable[item], people.loss[item]
        calls, who = {0}, set()
        if item in pilot or item in asked:
            calls |= {0, 1}
        if item in asked:
            who.add("person")
        if sources[item] < 2:
            at = range(sources[item], 2)
            answering = next((model for model in at if usable[model]), None)
            calls |= {model for model in at if answering is None or model <= answering} - (
                {0, 1} if item in asked else set()
            )
            loss = 0.0 if answering is None else people.models[item, answering]
            who |= {"expert"} if answering is None and item not in asked else set()
        elif sources[item] == 4:
            loss = 0.0
            who.add("expert")
        else:
            who.add("person")
            differs = table.loss[item, 1] > 0 or not usable[1]
            loss = said
            if sources[item] == 3:
                calls.add(1)
                loss = 0.0 if differs else said
                who |= {"expert"} if differs and item not in asked else set()
        if item in asked:
            loss = 0.0 if asked[item] or sources[item] == 4 else said
            who |= {"expert"} if asked[item] else set()
        errors += loss
        paid += sum(table.costs[item, model] for model in calls)
        paid += table.costs[item, 2] * ("person" in who) + people.expert_cost[item] * ("expert" in who)
        labelled += len(who)
    assert found.error == pytest.approx(errors / 300)
    assert found.net_saving == pytest.approx(1 - paid / table.costs[:, 2].sum())
    assert found.human_labels == labelled


def test_only_a_run_with_an_expert_keeps_a_promise_about_the_truth_where_people_copy_a_model() -> None:
    table = world(0.05, SHARED)
    settings = Settings(sizes=(500,), repeats=40, rules=(WITH_EXPERT, "fixed_sequence", "people_only"))
    rows = {row.rule: row for row in run(table, settings).rows}
    held, word = rows[WITH_EXPERT], rows["fixed_sequence"]
    assert held.holds_level
    assert not word.holds_level
    assert 40 * held.violation_rate <= stats.binom.isf(1e-4, 40, 0.05)
    assert 40 * word.violation_rate > 12
    # As the simulations of docs/validity.md have it: 1.108 labels per item, of which 1 is "people alone".
    assert held.net_saving_mean == pytest.approx(1 - 1.108, abs=0.1)
    assert rows["people_only"].error_mean == pytest.approx(table.people.loss.mean())


def test_why_it_is_left_out_is_said() -> None:
    table = world(0.05, SHARED, size=400)
    settings = Settings(sizes=(100,), rules=(WITH_EXPERT,), targets=("population",))
    assert "one delivered data set" in list_cases(table, settings)[1][0]
    settings = Settings(sizes=(100,), rules=(WITH_EXPERT,))
    assert "needs a column human1" in list_cases(replace(table, people=None), settings)[1][0]
    with pytest.raises(ExperimentError, match="of the table alone"):
        list_cases(table, replace(settings, severities=(1.0,)))


def test_the_example_of_the_documents_runs(tmp_path: Path) -> None:
    """With what `read_table` makes of a file, from its columns to a row of the result."""
    table = world(0.05, SHARED, size=400)
    people = table.people
    assert people is not None
    lines = ["human1,expert,pred1,conf1,pred2,cost1,cost2,cost_h"]
    rng = np.random.default_rng(0)
    for item in range(400):
        said = "b" if people.loss[item] else "a"
        answers = ["a" if right else rng.choice(["b", "c"]) for right in people.models[item] == 0]
        lines.append(f"{said},a,{answers[0]},{1 - table.u[item, 0]:.6f},{answers[1]},1,2,30")
    path = tmp_path / "outputs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(epsilons=(Decimal("0.1"),), sizes=(200,), repeats=3, rules=(WITH_EXPERT,))
    (row,) = run(read_table(path), settings).rows
    assert row.holds_level
    assert 0 < row.error_mean < 0.1
