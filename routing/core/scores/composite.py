"""Reading the parameter ``scores`` of those scores that are made of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.core.messages import declare, gettext_noop, say
from routing.core.scores.base import Part, ScoreError

MAX_PARTS = 20


def read_parts(kind: str, params: Mapping[str, Any], *, never: tuple[str, ...]) -> list[Part]:
    """The entries of ``params["scores"]``: a name, or an object with ``score`` and perhaps ``params``.

    Raises `ScoreError` where there is none, where one cannot be read, or where one is in ``never``.
    """
    entries = params.get("scores")
    if not isinstance(entries, list | tuple) or not 1 <= len(entries) <= MAX_PARTS:
        raise ScoreError(say("composite.no_list", score=repr(kind), most=MAX_PARTS))
    parts = []
    for place, entry in enumerate(entries, start=1):
        whole = entry if isinstance(entry, Mapping) else {"score": entry}
        name, own = whole.get("score"), whole.get("params", {})
        if not isinstance(name, str) or not isinstance(own, Mapping):
            raise ScoreError(say("composite.entry", place=place))
        if unknown := sorted(set(whole) - {"score", "params", "weight"}):
            raise ScoreError(say("composite.unknown", place=place, name=repr(unknown[0])))
        if name in never:
            raise ScoreError(say("composite.never", place=place, score=repr(kind), name=repr(name)))
        parts.append((name, own))
    return parts


SAYS = {
    "composite.no_list": gettext_noop(
        "the score %(score)s needs scores: a list of 1 to %(most)s scores it is made of"
    ),
    "composite.entry": gettext_noop(
        "entry %(place)s of scores must be a name, or an object with 'score' and 'params'"
    ),
    "composite.unknown": gettext_noop("entry %(place)s of scores has %(name)s, which means nothing there"),
    "composite.never": gettext_noop("entry %(place)s of scores: %(score)s cannot be made of %(name)s"),
}
declare(SAYS)
