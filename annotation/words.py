"""Words that are stored, and read in the language of whoever looks at them: what a job is doing, what is
wrong with a row of a file, and where.
"""

from collections.abc import Mapping
from typing import Any, Self

from django.utils.formats import number_format
from django.utils.translation import gettext as _


class Words(str):
    """English words, for programs and logs, that can be said in other languages, too.

    `template` is marked by gettext_noop and names its values: texts, whole numbers, or other words.
    """

    __slots__ = ("named", "template")

    template: str
    named: dict[str, str | int]

    def __new__(cls, template: str, **named: str | int) -> Self:
        # The template is English already, and few of what is said of rows is ever read.
        values = {name: f"{value:,}" if isinstance(value, int) else value for name, value in named.items()}
        words = super().__new__(cls, template % values if named else template)
        words.template, words.named = template, named
        return words

    @classmethod
    def name(cls, name: str) -> Self:
        """Only a name, which no language says otherwise."""
        return cls("%(name)s", name=name)

    @property
    def params(self) -> dict[str, Any]:
        """What is stored beside the English words: plain values."""
        named = {name: params_of(value) or value for name, value in self.named.items()}
        return {"template": self.template, "named": named}

    def in_words(self) -> str:
        """In the language of the reader."""
        return _said(self.template, self.named)


def params_of(words: str | int) -> dict[str, Any]:
    """What to store beside the words; {} for words, or a number, that know nothing else."""
    return words.params if isinstance(words, Words) else {}


def for_reader(words: str) -> str:
    """In the language of the reader, who looks at them before they are stored."""
    return words.in_words() if isinstance(words, Words) else words


def in_words(params: Mapping[str, Any], english: str) -> str:
    """What was stored, in the language of the reader; `english` where nothing but that was."""
    return _said(params["template"], params["named"]) if params else english


def _said(template: str, named: Mapping[str, Any]) -> str:
    return _(template) % {name: _value(value) for name, value in named.items()} if named else _(template)


def _value(value: Any) -> str:
    if isinstance(value, Words):
        return value.in_words()
    if isinstance(value, Mapping):
        return in_words(value, "")
    return str(number_format(value, force_grouping=True)) if isinstance(value, int) else str(value)
