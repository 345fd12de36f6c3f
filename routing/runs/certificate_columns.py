"""The columns of a stored certificate that say what its document says, for pages and for the routing."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import canonical_bytes, draw_line
from routing.core.every_score.chain import FIRST_SCORE
from routing.core.reference.sources import EXPERT
from routing.core.reference.words import EXPERT as BY_EXPERT
from routing.runs.expert.analyse import SLICES


def certificate_columns(document: Mapping[str, Any], rows: Sequence[CalibrationRow]) -> dict[str, Any]:
    """All of `Certificate` but the figures and messages, which `analysis.figures_and_messages` makes.
    `rows` are those of the draw.
    """
    content = canonical_bytes(document)
    return {
        "certified": document["result"]["certified"],
        "document": content.decode(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "draw_lines": "".join(draw_line(row) + "\n" for row in rows),
        **_policy(document),
    }


def _policy(document: Mapping[str, Any]) -> dict[str, Any]:
    """The shape of the chosen policy."""
    result = document["result"]
    if "shape" in result:
        return {
            "shape": result["shape"],
            "model_positions": result["models"],
            "thresholds": [_key(one) for one in result["thresholds"]],
        }
    if document.get("reference", {}).get("kind") == BY_EXPERT:
        return {"shape": SLICES, "model_positions": [], "thresholds": _slices(document)}
    thresholds = [_key(one) for one in result["thresholds"]]
    return {"shape": FIRST_SCORE, "model_positions": [], "thresholds": thresholds}


def _slices(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Upper ends of the slices, and where the chosen policy sends each: at first all to the expert."""
    result, ends = document["result"], document["slices"]["ends"]
    models = len(document["plan"]["costs"]) - 1
    sources = [models + EXPERT] * len(ends)
    # Where nothing is certified no chain is named, and none was walked.
    chain = next((one for one in document["chains"] if one["name"] == result["chain"]), None)
    for policy in chain["policies"][1 : result["policy"] + 1] if chain else ():
        where, source = policy["move"]
        sources[where] = source
    return [{"u": u, "v": v, "source": source + 1} for (u, v), source in zip(ends, sources, strict=True)]


def _key(threshold: Sequence[float] | None) -> dict[str, Any] | None:
    return None if threshold is None else {"u": threshold[0], "v": threshold[1]}
