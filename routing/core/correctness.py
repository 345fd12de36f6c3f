"""What counts as right, in words: one place for certificates, plans, files and pages.

Nobody knows the truth about an item. What is measured, and certified, is how far labels agree with those that
people give, blind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say, sentences

NOT_COUNTED = "not_counted"
"""Code of the sentence that people's own mistakes are not counted."""
SAYS_WHAT_IS_RIGHT = 3
"""First version of the certificates that hold that sentence."""
RIGHT = gettext_noop("What counts as right is the label that a person gave, blind, or would have given.")
MEANING = gettext_noop(
    "What counts as right is the label that a person gave, blind, or would have given. People's own mistakes "
    "are not counted, and would be further errors."
)
"""The long form, beside a short one."""

GIVEN_ELSEWHERE = gettext_noop(
    "What counts as right is the label that a person gave or would have given; some were given in another "
    "program, and whether blind is not known here. People's own mistakes are not counted."
)
"""Where the draw has labels of which only whoever ran that program knows how they came about."""


EXPERT_IS_RIGHT = gettext_noop(
    "What counts as right is the label that the expert gave, blind, or would have given. Mistakes of the "
    "expert are not counted."
)
EXPERTS_ARE_RIGHT = gettext_noop(
    "What counts as right is the label that the expert whose item it is gave, blind, or would have given. "
    "Mistakes of the experts are not counted; no two of them label the same item, so how much they differ "
    "among themselves is not known."
)
SETTLED_IS_RIGHT = gettext_noop(
    "What counts as right is what two people gave, blind, or would have given, and a third where they "
    "differ. A mistake that two people make alike is not counted."
)
EXPERTS = "experts"
"""The reference `expert` where several share the work."""
_BY_REFERENCE = {"expert": EXPERT_IS_RIGHT, EXPERTS: EXPERTS_ARE_RIGHT, "settled": SETTLED_IS_RIGHT}


def meaning_of_right(*, certified: bool, version: int = SAYS_WHAT_IS_RIGHT, reference: str = "") -> str:
    """What a certificate of this version leaves open, without what it says itself; ``reference`` is the kind
    that it names, or `EXPERTS`, "" of versions that name none.
    """
    if reference in _BY_REFERENCE:
        return _BY_REFERENCE[reference]
    return RIGHT if certified and version >= SAYS_WHAT_IS_RIGHT else MEANING


def left_open_by(document: Mapping[str, Any]) -> str:
    """The same of a certificate as it stands in its file. With one person as the reference labels may have
    come from another program.
    """
    if document["provenance"].get("calibration_elsewhere"):
        return GIVEN_ELSEWHERE
    reference = document.get("reference", {})
    return meaning_of_right(
        certified=document["result"]["certified"],
        version=document["version"],
        reference=EXPERTS if EXPERTS in reference else reference.get("kind", ""),
    )


_PERSON = "the label that a person gave or would have given"
_BEFORE = (
    (f" differ from {_PERSON}", " are wrong"),
    (f" differ, by the loss '%(loss)s', from {_PERSON}", " are wrong"),
    (f"a label that differs from {_PERSON}", "a wrong label"),
    (f"a label that differs, by the loss '%(loss)s', from {_PERSON}", "a wrong label"),
    (f" against {_PERSON}", ""),
)


def before_version_3(said: Iterable[Message]) -> str:
    """What certificates of versions 1 and 2 say instead, which did not say what counts as right."""
    return sentences((message for message in said if message.code != NOT_COUNTED), _template_before_version_3)


def _template_before_version_3(template: str) -> str:
    for words, earlier in _BEFORE:
        template = template.replace(words, earlier)
    return template


def odds_of(own: Decimal, spent: Decimal | None) -> dict[str, str]:
    """How often a promise holds at least, and ``alpha``, how often it may not: of this draw and of those
    before it on the same items together, since somebody may have drawn until one looked good.
    """
    alpha = min(own + (spent or 0), Decimal(1))
    return {"odds": percent(1 - alpha), "alpha": plain(alpha)}


def spent_said(own: Decimal, spent: Decimal | None) -> list[Message]:
    """Which part of the alpha that a promise states is its draw's ``own``, where others spent another."""
    return [say("spent_before", own=plain(own), spent=plain(spent))] if spent else []


SAYS = {
    "spent_before": gettext_noop(
        "Of this alpha %(own)s is this draw's, and %(spent)s was spent by earlier draws on these items."
    ),
    "not_counted": gettext_noop("People's own mistakes are not counted."),
}
declare(SAYS)
