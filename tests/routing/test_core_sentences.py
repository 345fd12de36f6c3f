"""Sentences that the core really says are found among the forms that can be translated."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from django.utils.translation import override

from routing.core.certify import DEARER, _blanks
from routing.core.plan import Plan
from routing.core.planner import outlook
from routing.core.targets import TARGETS
from routing.core.targets.base import Promise
from routing.core_sentences import FORMS, told

PROMISE = Promise(epsilon=Decimal("0.05"), alpha=Decimal("0.1"))
PROMISES = [
    replace(
        PROMISE, binary=binary, loss="numeric", through_pool=pool, whole_size=size, labelled_before=before
    )
    for binary, pool, size, before in product((True, False), (True, False), (None, 1200), (0, 7))
]


@pytest.mark.parametrize("target", list(TARGETS), ids=lambda target: target.name)
@pytest.mark.parametrize("blanks", [0, 1, 2])
def test_a_certificate_is_told_in_french(target, blanks):
    for promise in PROMISES:
        text = target.sentence(promise) + _blanks(blanks) + DEARER
        with override("fr"):
            french = told(text)
        assert french != text
        assert "probabilit" in french
        assert not {" with ", " labels ", " people "} & set(french.split())
        with override("en"):
            assert told(text) == text


PLANS = {
    "certifiable": {},
    "too few": {"m": 20},
    "no draw would do": {"pool_size": 40, "m": 20, "target": "population"},
    "learnt": {"rule": "split_fixed_sequence"},
    "a loss": {"loss": "jaccard"},
    "a loss, too few": {"loss": "jaccard", "m": 50},
}


@pytest.mark.parametrize("fields", PLANS.values(), ids=PLANS)
def test_an_outlook_is_told_in_french(fields):
    costs = (Decimal(1), Decimal(3), Decimal(8))
    plan = Plan(
        **{
            "epsilon": Decimal("0.05"),
            "alpha": Decimal("0.05"),
            "m": 500,
            "p": Decimal("0.9"),
            "costs": costs,
            "pool_size": 3000,
            "target": "dataset",
            **fields,
        }
    )
    text = outlook(plan).sentence
    with override("fr"):
        assert told(text) != text
    with override("en"):
        assert told(text) == text


def test_what_has_another_form_stays_as_it_is():
    with override("fr"):
        for text in ("", "Something else.", f"{FORMS[12]} And more."):
            assert told(text) == text
