"""What counts as right, in words: one place for certificates, plans, files and pages.

Nobody knows the truth about an item. What is measured, and certified, is how far labels agree with those that
people give, blind.
"""

from __future__ import annotations

import re

PERSON = "the label that a person gave or would have given"
NOT_COUNTED = "People's own mistakes are not counted."
RIGHT = "What counts as right is the label that a person gave, blind, or would have given."
MEANING = (
    "What counts as right is the label that a person gave, blind, or would have given. People's own mistakes "
    "are not counted, and would be further errors."
)
"""The long form, beside a short one."""


def beside(sentence: str) -> str:
    """What a promise leaves open, without what it says itself."""
    return RIGHT if NOT_COUNTED in sentence else MEANING


def differ(loss: str) -> str:
    """What labels do that a loss of 0 or 1 counts."""
    return f"differ from {PERSON}" if loss == "zero_one" else f"differ, by the loss '{loss}', from {PERSON}"


def differs(loss: str) -> str:
    """The same of one label."""
    return differ(loss).replace("differ", "differs", 1)


def against(loss: str) -> str:
    """A mean loss that is no count, and what it is measured against."""
    return f"loss '{loss}' against {PERSON}"


_BEFORE = (
    (re.compile(rf" differ(?:, by the loss '[^']+',)? from {PERSON}"), " are wrong"),
    (
        re.compile(rf"a label that differs(?:, by the loss '[^']+',)? from {PERSON}"),
        "a wrong label",
    ),
    (re.compile(rf" against {PERSON}"), ""),
    (re.compile(f" {re.escape(NOT_COUNTED)}"), ""),
)


def before_version_3(sentence: str) -> str:
    """The sentence as certificates of versions 1 and 2 have it, which did not say what counts as right."""
    for words, earlier in _BEFORE:
        sentence = words.sub(earlier, sentence)
    return sentence
