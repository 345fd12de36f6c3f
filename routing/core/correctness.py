"""What counts as right, in words: one place for certificates, plans, files and pages.

Nobody knows the truth about an item. What is measured, and certified, is how far labels agree with those that
people give, blind.
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.core.messages import Message, declare, gettext_noop, sentences

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


def meaning_of_right(*, certified: bool, version: int = SAYS_WHAT_IS_RIGHT) -> str:
    """What a certificate of this version leaves open, without what it says itself."""
    return RIGHT if certified and version >= SAYS_WHAT_IS_RIGHT else MEANING


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


SAYS = {
    "not_counted": gettext_noop("People's own mistakes are not counted."),
}
declare(SAYS)
