"""What each answer to "whose label is right" is foretold to cost, against what simulated runs cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from routing.core.forecast_paths import suspected
from routing.core.reference.forecast import PeopleForecast
from routing.core.reference.ways import (
    ALONE,
    EVERYTHING,
    NAMES,
    PEOPLES_WORD,
    SETTLED,
    WITH_PEOPLE,
    Way,
    against_person,
    recommended,
    ways,
)
from testbed.known_truth import SETTINGS
from testbed.people import INDEPENDENT, HumanDraw

pytestmark = pytest.mark.costly
SIMULATED = {(0.02, 0.0): 0.796, (0.05, 0.0): 0.877, (0.08, 0.0): 0.927, (0.05, 0.6): 1.109}
"""Cost per item with an expert, r = .5, in labels by a person: of 2,000 runs of `validity.py --human`."""
PILOTS = 6


@cache
def foretold(people: PeopleForecast, *, seed: int = 1, m: int | None = None) -> list[dict[str, Way]]:
    """By name, of the world `power` and one pilot after the other; costs are per item, in labels."""
    found, rng = [], np.random.default_rng(seed)
    for _ in range(PILOTS):
        draw = HumanDraw(SETTINGS["power"], 0.0, INDEPENDENT, rng)  # people do not touch a pilot
        run = draw.expert_plan("0.5")
        pilot = draw.pilot_data()
        assert pilot is not None
        plan = run.plan if m is None else replace(run.plan, m=m)
        unit = plan.pool_size * float(plan.costs[-1])
        seen = ways(replace(run, plan=plan), pilot, suspected(pilot, plan.loss_function()), people)
        found.append({way.name: replace(way, cost=way.cost / unit) for way in seen})
    return found


def cost(name: str, people: PeopleForecast) -> float:
    return float(np.mean([one[name].cost for one in foretold(people)]))


@pytest.mark.parametrize(("error", "shared"), list(SIMULATED))
def test_an_expert_with_people_is_foretold_about_what_simulated_runs_cost(
    error: float, shared: float
) -> None:
    assert cost(WITH_PEOPLE, PeopleForecast(error, shared)) == pytest.approx(
        SIMULATED[error, shared], abs=0.1
    )


def test_shared_mistakes_make_an_expert_with_people_dearer_and_leave_her_alone_as_she_was() -> None:
    own, shared = PeopleForecast(0.05, 0.0), PeopleForecast(0.05, 0.6)
    assert cost(WITH_PEOPLE, shared) > cost(WITH_PEOPLE, own) + 0.1
    assert cost(ALONE, shared) == cost(ALONE, own)


def test_the_more_people_err_the_more_their_word_costs_and_where_models_err_alike_the_less() -> None:
    word = [cost(PEOPLES_WORD, PeopleForecast(error, 0.0)) for error in (0.0, 0.03, 0.08)]
    assert word == sorted(word)
    assert cost(PEOPLES_WORD, PeopleForecast(0.08, 0.6)) < word[-1]
    wrong = np.array([[0.1, 0.0], [0.3, 0.2]])
    assert against_person(wrong, PeopleForecast(0.1, 0.0)) == pytest.approx(wrong + 0.1)
    assert against_person(wrong, PeopleForecast(0.1, 1.0)) == pytest.approx(wrong * [0.5, 0.0])


def test_settled_labels_take_two_people_and_a_third_where_they_differ() -> None:
    with_errors, without = (foretold(PeopleForecast(error, 0.0))[0][SETTLED] for error in (0.05, 0.0))
    assert with_errors.cost > without.cost
    assert with_errors.people / without.people == pytest.approx((2 + 0.095) / 2, rel=0.05)


def test_all_ways_are_told_of_and_the_cheapest_that_counts_people_is_recommended() -> None:
    for seen in foretold(PeopleForecast(0.02, 0.0)):
        assert tuple(seen) == NAMES
        assert seen[EVERYTHING].cost == 3
        assert seen[EVERYTHING].expert == 3000
        best = recommended(tuple(seen.values()))
        assert best.counts_people
        assert best.cost == min(seen[name].cost for name in (WITH_PEOPLE, ALONE, EVERYTHING))
        assert seen[ALONE].people == 0


def test_what_can_certify_nothing_is_left_out() -> None:
    for seen in foretold(PeopleForecast(0.02, 0.0), m=90):
        assert WITH_PEOPLE not in seen
        assert PEOPLES_WORD in seen
    for seen in foretold(PeopleForecast(0.02, 0.0), m=40):
        assert tuple(seen) == (EVERYTHING,)
        assert recommended(tuple(seen.values())).cost == 3


def test_an_expert_no_dearer_than_people_does_it_alone() -> None:
    draw = HumanDraw(SETTINGS["power"], 0.05, INDEPENDENT, np.random.default_rng(2))
    run = replace(draw.expert_plan("0.5"), expert_cost=Decimal(draw.plan.costs[-1]))
    pilot = draw.pilot_data()
    assert pilot is not None
    seen = ways(run, pilot, suspected(pilot, run.plan.loss_function()), PeopleForecast(0.05, 0.0))
    assert recommended(seen).name == ALONE
