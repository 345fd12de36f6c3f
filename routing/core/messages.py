"""What the core says, by code and parameters: of one message a sentence is made in each language.

The templates are English, and each is declared in the module that says it.  `str` of a message is the English
sentence: certificates hold it.  Whoever speaks another language translates the template and fills it in by
`Message.in_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Param = Any
"""A text, a number, a term, a message within this one, or several of those."""


TEMPLATES: dict[str, str] = {}
"""By code, of all modules that are imported."""


def declare(templates: Mapping[str, str]) -> None:
    """Make the templates known by which a module says what it has to; ValueError where a code is taken."""
    if taken := sorted(TEMPLATES.keys() & templates.keys()):
        raise ValueError(f"there is already a template {taken[0]!r}")
    TEMPLATES.update(templates)


def gettext_noop(words: str) -> str:
    """Words that a page may translate, marked for the program that gathers such."""
    return words


@dataclass(frozen=True)
class Message:
    """A part of what is said: a key of `TEMPLATES`, and what to fill in there."""

    code: str
    params: Mapping[str, Param]

    def __str__(self) -> str:
        return self.in_words(str)

    def in_words(self, translate: Callable[[str], str]) -> str:
        """The sentence; ``translate`` makes a template of another language of an English one."""
        params = {name: _filled_in(value, translate) for name, value in self.params.items()}
        return translate(TEMPLATES[self.code]) % params


class Term(str):
    """A title or a few words, to be filled in, that are translated by themselves."""

    __slots__ = ()


class CoreError(ValueError):
    """What the core refuses. ``said`` is why; `str` of the error is the English sentence."""

    def __init__(self, said: Message) -> None:
        super().__init__(said)
        self.said = said


def say(code: str, **params: Param) -> Message:
    return Message(code, params)


def sentences(messages: Iterable[Message], translate: Callable[[str], str] = str) -> str:
    """Several messages after one another."""
    return " ".join(message.in_words(translate) for message in messages)


def to_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Plain values, from which `from_json` reads the same messages."""
    return [_plain(message) for message in messages]


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Raises KeyError where one names no template that is known here."""
    return tuple(_read(entry) for entry in stored)


def _filled_in(value: Param, translate: Callable[[str], str]) -> Param:
    if isinstance(value, Message):
        return value.in_words(translate)
    if isinstance(value, Term):
        return translate(value)
    if isinstance(value, tuple):
        return "; ".join(message.in_words(translate) for message in value)
    return value


def _plain(value: Param) -> Any:
    if isinstance(value, Message):
        return {"code": value.code, "params": {name: _plain(one) for name, one in value.params.items()}}
    if isinstance(value, Term):
        return {"term": str(value)}
    if isinstance(value, tuple):
        return to_json(value)
    return value


def _read(value: Any) -> Param:
    if isinstance(value, Mapping):
        if "term" in value:
            return Term(value["term"])
        if value["code"] not in TEMPLATES:
            raise KeyError(value["code"])
        return Message(value["code"], {name: _read(one) for name, one in value["params"].items()})
    return from_json(value) if isinstance(value, list) else value
