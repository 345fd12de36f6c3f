"""What a prediction says about an item."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.task_types import TaskType
from routing.sources.backends.base import Answer
from routing.sources.backends.label_studio_ml.label_config import VALUES, LabelConfig
from routing.sources.backends.label_studio_ml.server import version_of


def answer_of(prediction: Any, config: LabelConfig, kind: TaskType, version: str) -> Answer:
    """The answer in one prediction. Where several came for an item, the first counts; `version` is the model
    version of one that names none itself.
    """
    if isinstance(prediction, list):
        prediction = prediction[0] if prediction else None
    if not isinstance(prediction, Mapping):
        return Answer(None, "no prediction", served_model=version)
    regions = _regions(prediction, config)
    value, reason = _value(regions, config, kind)
    score = _score(prediction, regions)
    return Answer(
        value,
        reason,
        raw={} if score is None else {"confidence": score},
        served_model=version_of(prediction) or version,
    )


def _regions(prediction: Mapping[str, Any], config: LabelConfig) -> list[Mapping[str, Any]]:
    """Parts of the prediction that answer the project's question: those under the name of its tag, or those
    of its kind where the backend has a name of its own."""
    result = prediction.get("result")
    found = [entry for entry in result if isinstance(entry, Mapping)] if isinstance(result, list) else []
    own = [entry for entry in found if entry.get("from_name") == config.control]
    return own or [entry for entry in found if str(entry.get("type")).lower() == config.control_tag.lower()]


def _value(
    regions: Sequence[Mapping[str, Any]], config: LabelConfig, kind: TaskType
) -> tuple[str | list[str] | None, str]:
    """The answer and "", or None and why there is none."""
    if not regions:
        return None, "no prediction"
    field = VALUES[config.control_tag]
    values = []
    for region in regions:
        value = region.get("value")
        if not isinstance(value, Mapping) or value.get(field) is None:
            return None, f"the prediction has no value {field!r}"
        one = value[field]
        values += one if isinstance(one, list) else [one]
    texts = [_text(value) for value in values]
    if None in texts:
        return None, f"the prediction has something that is no {field!r}"
    known = [text for text in texts if text is not None]
    if kind.several:
        return list(dict.fromkeys(known)), ""
    if len(set(known)) != 1:
        return None, "several answers in place of one" if known else "no prediction"
    return known[0], ""


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _score(prediction: Mapping[str, Any], regions: Sequence[Mapping[str, Any]]) -> float | None:
    """The prediction's score; that of its part where it has none and only one part answers."""
    scores = [prediction.get("score")]
    if len(regions) == 1:
        scores.append(regions[0].get("score"))
    return next(
        (float(score) for score in scores if isinstance(score, int | float) and not isinstance(score, bool)),
        None,
    )
