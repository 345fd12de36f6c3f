"""What other references would have come to on the labels of a run with an expert."""

import dataclasses

import numpy as np
import pytest

from routing.core.certify import certify
from routing.core.chain import build_chains
from routing.core.outlook import outlook
from routing.core.reference.beside import Beside, beside, peoples_plan
from routing.core.reference.promise import settled_outlook
from routing.core.reference.sources import AskedLabels
from testbed.settings import plan_of
from tests.core.expert_runs import ExpertRun


def rows_of(made: ExpertRun) -> dict[str, Beside]:
    plan = peoples_plan(made.run)
    u = made.said[0][:, 0]
    chains = build_chains(plan, u=u, v=made.v, pilot=made.pilot)
    rows = beside(made.run, made.chains, made.calibration, made.found, peoples_chains=chains)
    return {row.name: row for row in rows}


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("share", ["1", "0.5"])
def test_each_reference_is_told_from_the_labels_that_are_there(share: str, scored: bool) -> None:
    made = ExpertRun(share=share, scored=scored, size=400, drawn=200)
    rows = rows_of(made)
    own, everything = rows["expert"], rows["everything"]
    assert own.cost == made.found.expected_net_cost
    assert own.wrong == made.found.counts.seen
    assert (everything.wrong, everything.share) == (0, 0.0)
    assert everything.cost == 400 * 3
    # Nobody else is paid beside her, and she labels every asked item.
    assert rows["alone"].cost <= everything.cost + 400 * 0.051 + 1e-9
    assert {row.seen for row in rows.values()} == {own.seen}


def test_peoples_word_is_an_ordinary_run_whose_mistakes_show() -> None:
    made = ExpertRun(share="1", missing=0.0, error=0.3, epsilon="0.005", size=400, drawn=200)
    rows = rows_of(made)
    asked = [row for row in made.calibration.rows if row.asked]
    plan = peoples_plan(made.run)
    chains = build_chains(plan, u=made.said[0][:, 0], v=made.v, pilot=made.pilot)
    said = [
        dataclasses.replace(row, label=row.person, annotator="", person=None) for row in made.calibration.rows
    ]
    found = certify(plan, chains, type(made.calibration).from_rows(said))
    assert not found.certified
    # So everybody's label is delivered as it is.
    wrong = sum(row.person != row.label for row in asked)
    assert rows["person"].wrong == wrong > 0
    assert rows["person"].share == wrong / len(asked)
    assert rows["person"].cost == found.expected.net_cost
    assert not rows["person"].found


def test_what_all_agree_on_counts_by_the_recheck_set() -> None:
    made = ExpertRun(share="0.5", missing=0.0, size=400, drawn=200)
    labels = AskedLabels.of_calibration(made.run, made.calibration)
    rows = rows_of(made)
    for row in rows.values():
        assert row.seen == int(np.count_nonzero(labels.seen & labels.labelled)) < labels.asked
        assert row.share >= row.wrong / labels.asked


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"p": "1"}, "Two people label each of the 200 drawn items, and a third those on which they differ."),
        ({"p": "0.5"}, "Two people label each of about 100 of 200 drawn items (p = 0.5), and a third"),
        ({"rule": "split_fixed_sequence"}, "of these teach the order of the steps"),
        ({"drawn": 5}, "That is too few to certify 5 % even without an error; at least"),
    ],
)
def test_a_plan_of_two_people_says_from_whom_models_may_differ(fields: dict, words: str) -> None:
    given = {"size": 1000, "drawn": 200, "p": "1"} | fields
    plan = plan_of(given.pop("size"), given.pop("drawn"), **given)
    found, ordinary = settled_outlook(plan), outlook(plan)
    assert words in found.sentence
    assert "differ from people" not in found.sentence
    assert dataclasses.replace(found, said=ordinary.said) == ordinary
    if found.certifiable:
        assert "the models differ from what these people give on at most" in found.sentence
