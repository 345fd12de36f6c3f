"""The menus of a plan agree with what a plan accepts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from routing.core.bounds import BOUNDS
from routing.core.calibration import ObservedLosses, sorted_losses
from routing.core.certify import certify_losses
from routing.core.chain import build_chains, cut_slices, number_of_chains
from routing.core.choices import choices
from routing.core.outlook import outlook
from routing.core.plan import PlanError, validate
from routing.core.registry import UnknownNameError
from routing.core.rules import RULES
from routing.core.targets import TARGETS
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly

MIXES = list(product(TARGETS.names(), (True, False)))


@pytest.mark.parametrize(("target", "constant_p"), MIXES)
def test_what_is_valid_can_be_planned_and_the_rest_is_refused_in_the_same_words(
    target: str, constant_p: bool
) -> None:
    menus = choices(target, constant_p=constant_p)
    varying = {} if constant_p else {"p_min": "0.1"}
    for part, menu in (("bound", menus.bounds), ("rule", menus.rules)):
        for choice in menu:
            plan = plan_of(3000, 500, target=target, **{part: choice.name}, **varying)
            if choice.valid:
                validate(plan)
            else:
                with pytest.raises(PlanError) as refused:
                    validate(plan)
                assert str(refused.value) == str(choice.refused or "")
                assert refused.value.field == part


@pytest.mark.parametrize(("target", "constant_p"), MIXES)
@pytest.mark.parametrize("binary", [True, False])
def test_each_menu_has_one_default_and_it_is_valid(target: str, constant_p: bool, binary: bool) -> None:
    menus = choices(target, binary=binary, constant_p=constant_p)
    for menu in (menus.targets, menus.bounds, menus.rules):
        defaults = [choice for choice in menu if choice.default]
        assert len(defaults) == 1
        assert defaults[0].valid, defaults[0].refused


SIZE, DRAWN = 400, 240
LOSSES = {"zero_one": True, "jaccard": False}


def observed(seed: int) -> ObservedLosses:
    """Two models, hardly ever wrong, on 240 drawn items, each asked about with probability 3/4."""
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(rng.random(DRAWN) < 0.75)
    losses = (rng.random((len(places), 2)) < 0.004).astype(float)
    u = rng.random(len(places))
    return sorted_losses(
        u, np.zeros(len(u), int), losses, losses, drawn=DRAWN, order=places, weights=np.full(len(u), 4 / 3)
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("target", "constant_p"), MIXES)
def test_every_valid_mix_certifies_and_foretells(target: str, constant_p: bool, loss: str) -> None:
    menus = choices(target, binary=LOSSES[loss], constant_p=constant_p)
    u, v = np.arange(SIZE) / SIZE, np.zeros(SIZE, dtype=np.int64)
    reference = np.arange(SIZE) >= DRAWN if target == "population" else None
    valid = [(b.name, r.name) for b in menus.bounds for r in menus.rules if b.valid and r.valid]
    assert valid
    for bound, rule in valid:
        plan = plan_of(
            SIZE,
            DRAWN,
            target=target,
            bound=bound,
            rule=rule,
            loss=loss,
            p="0.75",
            p_min=None if constant_p else "0.75",
            epsilon="0.4",
            pilot_size=0,
        )
        chains = build_chains(plan, u=u, v=v, reference=reference)
        slices = None if chains else cut_slices(plan, u=u, v=v, reference=reference)
        result = certify_losses(plan, chains, observed(1), slices=slices)
        assert result.certified, (bound, rule)
        assert result.pointwise_upper_bound is not None
        assert 0 < result.pointwise_upper_bound <= 0.4 + 1e-9, (bound, rule)
        view = outlook(plan, chains=number_of_chains(plan))
        assert view.certifiable
        assert view.smallest_n == result.smallest_n <= 180, (bound, rule)


def test_every_choice_has_words_and_every_refusal_names_another_choice() -> None:
    for target, constant_p in MIXES:
        for binary in (True, False):
            menus = choices(target, binary=binary, constant_p=constant_p)
            for choice in (*menus.targets, *menus.bounds, *menus.rules):
                assert choice.title
                assert choice.summary
                if str(choice.refused or ""):
                    named = {
                        name
                        for name in (*BOUNDS.names(), *RULES.names())
                        if f"'{name}'" in str(choice.refused or "") and name != choice.name
                    }
                    assert named, str(choice.refused or "")
                    assert any(
                        other.valid for other in (*menus.bounds, *menus.rules) if other.name in named
                    ), str(choice.refused or "")


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="dataset, pool, population"):
        choices("elsewhere")
