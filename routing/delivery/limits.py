"""What the formats of a delivery cannot carry, in words and, where it was counted, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.delivery.formats import FORMATS


@dataclass(frozen=True)
class FormatLimit:
    """`count`: how many cells of the delivery it concerns; None where it was not counted."""

    kind: str
    words: str
    count: int | None


@dataclass(frozen=True)
class FormatLimits:
    """Of formats that share their limits: the names of their files, and the limits, none for an exact one."""

    files: list[str]
    limits: list[FormatLimit]


def format_limits(counted: Mapping[str, Mapping[str, int]] | None = None) -> list[FormatLimits]:
    """Of the formats in `counted`, which has what their writers counted; without it of all formats."""
    together: dict[tuple[tuple[str, int | None], ...], FormatLimits] = {}
    for name, writer in FORMATS.items():
        if counted is not None and name not in counted:
            continue
        counts: Mapping[str, Any] = counted[name] if counted is not None else {}
        limits = [FormatLimit(kind, str(words), counts.get(kind)) for kind, words, _ in writer.limits]
        key = tuple((limit.words, limit.count) for limit in limits)
        together.setdefault(key, FormatLimits([], limits)).files.append(writer.file_name)
    return list(together.values())
