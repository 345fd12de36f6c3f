"""Reading the parameter ``scores`` of those scores that are made of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.core.scores.base import Part, ScoreError

MAX_PARTS = 20


def read_parts(kind: str, params: Mapping[str, Any], *, never: tuple[str, ...]) -> list[Part]:
    """The entries of ``params["scores"]``: a name, or an object with ``score`` and perhaps ``params``.

    Raises `ScoreError` where there is none, where one cannot be read, or where one is in ``never``.
    """
    entries = params.get("scores")
    if not isinstance(entries, list | tuple) or not 1 <= len(entries) <= MAX_PARTS:
        raise ScoreError(f"the score {kind!r} needs scores: a list of 1 to {MAX_PARTS} scores it is made of")
    parts = []
    for place, entry in enumerate(entries, start=1):
        whole = entry if isinstance(entry, Mapping) else {"score": entry}
        name, own = whole.get("score"), whole.get("params", {})
        if not isinstance(name, str) or not isinstance(own, Mapping):
            raise ScoreError(
                f"entry {place} of scores must be a name, or an object with 'score' and 'params'"
            )
        if unknown := sorted(set(whole) - {"score", "params", "weight"}):
            raise ScoreError(f"entry {place} of scores has {unknown[0]!r}, which means nothing there")
        if name in never:
            raise ScoreError(f"entry {place} of scores: {kind!r} cannot be made of {name!r}")
        parts.append((name, own))
    return parts
