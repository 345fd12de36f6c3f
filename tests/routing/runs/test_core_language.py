"""What the core says is one message for every language: English as certificates hold it, and that of the
reader.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from django.utils.translation import override

from routing.core.certify import DEARER, _blanks
from routing.core.messages import TEMPLATES, from_json, say, sentences, to_json
from routing.core.outlook import outlook
from routing.core.plan import Plan
from routing.core.targets import TARGETS
from routing.core.targets.base import Guarantee
from routing.core_language import message_in_words, stored_in_words, translated

PROMISE = Guarantee(epsilon=Decimal("0.05"), alpha=Decimal("0.1"))
PROMISES = [
    replace(
        PROMISE, binary=binary, loss="numeric", through_pool=pool, whole_size=size, labelled_before=before
    )
    for binary, pool, size, before in product((True, False), (True, False), (None, 1200), (0, 7))
]


@pytest.mark.parametrize("target", list(TARGETS), ids=lambda target: target.name)
@pytest.mark.parametrize("blanks", [0, 1, 2])
def test_a_certificate_is_told_in_french(target, blanks):
    for guarantee in PROMISES:
        said = [*target.promises(guarantee), *_blanks(blanks), say(DEARER)]
        with override("fr"):
            french = message_in_words(said)
        assert french != sentences(said)
        assert "probabilit" in french
        assert not {" with ", " labels ", " people "} & set(french.split())
        with override("en"):
            assert message_in_words(said) == sentences(said)


PLANS = {
    "certifiable": {},
    "too few": {"m": 20},
    "no draw would do": {"pool_size": 40, "m": 20, "target": "population"},
    "learnt": {"rule": "split_fixed_sequence"},
    "learnt, too few": {"rule": "split_fixed_sequence", "m": 30},
    "a loss": {"loss": "jaccard"},
    "a loss, too few": {"loss": "jaccard", "m": 50},
    "a loss, no draw would do": {"loss": "jaccard", "m": 20, "pool_size": 40, "target": "population"},
    "p varies": {"loss": "jaccard", "p_min": Decimal("0.5"), "bound": "hoeffding_bentkus"},
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
    seen = outlook(plan)
    with override("fr"):
        french = message_in_words(seen.said)
    assert french != seen.sentence
    assert not {"items", "labels", "average"} & set(french.split())
    with override("en"):
        assert message_in_words(seen.said) == seen.sentence


NOTHING = say(
    "nothing",
    reason=say(
        "nothing.errors",
        steps=(
            say("nothing.step", chain="ordered", seen=say("nothing.seen_errors", errors="9")),
            say("nothing.step", chain="learnt", seen=say("nothing.seen_errors", errors="7")),
        ),
        least=56,
    ),
)


def test_messages_within_messages_are_told_in_the_same_language():
    assert str(NOTHING) == (
        "Nothing could be certified, so people label everything: the safest step of the chain 'ordered' "
        "already showed 9 errors; the safest step of the chain 'learnt' already showed 7 errors (with no "
        "error at all, 56 labels would have been enough)."
    )
    with override("fr"):
        assert "9 erreurs; l’étape" in message_in_words(NOTHING)


def test_messages_come_back_from_json():
    said = (NOTHING, say("blank_items", blanks=2))
    stored = json.loads(json.dumps(to_json(said)))
    assert from_json(stored) == said
    assert stored_in_words(stored, "") == sentences(said)


def test_what_is_not_stored_or_not_known_any_more_is_told_in_english():
    with override("fr"):
        assert stored_in_words([], "As it was.") == "As it was."
        assert stored_in_words([{"code": "of a later version", "params": {}}], "As it was.") == "As it was."


def test_what_is_empty_stays_empty():
    with override("fr"):
        assert translated("") == ""


def test_every_template_is_translated():
    with override("fr"):
        # Those that are nothing but what they are filled with are the same in every language.
        worded = [
            words for words in TEMPLATES.values() if re.search("[a-z]", re.sub(r"%\(\w+\)s", "", words))
        ]
        assert [words for words in worded if translated(words) == words] == []
