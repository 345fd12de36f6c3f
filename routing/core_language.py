"""What the statistical core says, in the language of the reader. The core itself knows no Django."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext

from routing.core.messages import CoreError, Message, from_json, sentences
from routing.core.reference import SAYING  # noqa: F401 - what is said there is stored and read again

_SYMBOL = re.compile(r"[a-z_]+( [a-z_])? = ")


def translated(words: str) -> str:
    """A title or summary that the core declares."""
    return gettext(words) if words else ""


def message_in_words(said: Message | Iterable[Message]) -> str:
    return sentences([said] if isinstance(said, Message) else said, gettext)


def refusal_in_words(error: CoreError) -> str:
    """Why the core refuses something, as a sentence. One that begins with a symbol, "m = 500", keeps it as it
    is.
    """
    words = message_in_words(error.said)
    return f"{words if _SYMBOL.match(words) else words[:1].upper() + words[1:]}."


def stored_in_words(stored: Iterable[Mapping[str, Any]], english: str) -> str:
    """Messages that were stored as JSON; `english` where nothing, or what this version does not know, was."""
    try:
        return message_in_words(from_json(stored)) or english
    except KeyError:
        return english
