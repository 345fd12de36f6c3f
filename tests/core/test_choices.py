"""The menus of a plan agree with what a plan accepts."""

from __future__ import annotations

from itertools import product

import pytest

from routing.core.bounds import BOUNDS
from routing.core.choices import choices
from routing.core.plan import PlanError, validate
from routing.core.registry import UnknownNameError
from routing.core.rules import RULES
from routing.core.targets import TARGETS
from tests.core.worlds import plan_of

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
                assert str(refused.value) == choice.refusal
                assert refused.value.field == part


@pytest.mark.parametrize(("target", "constant_p"), MIXES)
@pytest.mark.parametrize("binary", [True, False])
def test_each_menu_has_one_default_and_it_is_valid(target: str, constant_p: bool, binary: bool) -> None:
    menus = choices(target, binary=binary, constant_p=constant_p)
    for menu in (menus.targets, menus.bounds, menus.rules):
        defaults = [choice for choice in menu if choice.default]
        assert len(defaults) == 1
        assert defaults[0].valid, defaults[0].refusal


def test_every_choice_has_words_and_every_refusal_names_another_choice() -> None:
    for target, constant_p in MIXES:
        for binary in (True, False):
            menus = choices(target, binary=binary, constant_p=constant_p)
            for choice in (*menus.targets, *menus.bounds, *menus.rules):
                assert choice.title
                assert choice.summary
                if choice.refusal:
                    named = {
                        name
                        for name in (*BOUNDS.names(), *RULES.names())
                        if f"'{name}'" in choice.refusal and name != choice.name
                    }
                    assert named, choice.refusal
                    assert any(
                        other.valid for other in (*menus.bounds, *menus.rules) if other.name in named
                    ), choice.refusal


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="dataset, pool, population"):
        choices("elsewhere")
