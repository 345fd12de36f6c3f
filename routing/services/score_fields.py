"""What uncertainty scores read: a stored prediction, and how the labels of the project are spelled."""

from collections.abc import Mapping
from typing import Any

from annotation.values import ValueReader, as_text
from routing.models import Prediction


def fields_of(row: Prediction, reader: ValueReader) -> dict[str, object]:
    """What scores read of a stored prediction; `reader` is that of its project."""
    return score_fields(row.raw, row.value, row.reason, row.finish_reason, reader)


def score_fields(
    raw: Mapping[str, Any], value: Any, reason: str, finish_reason: str, reader: ValueReader
) -> dict[str, object]:
    """What scores read of an answer with this canonical value, stored or not.

    Scores compare texts. Samples of one choice stay as they are spelled, because scores know the spellings;
    those of other task types are brought into the form of the answer, and one that cannot be read is None,
    which agrees with nothing.
    """
    fields = {**raw, "label": None if value is None else as_text(value), "reason": reason}
    fields |= {"finish_reason": finish_reason, "allowed": reader.keys if reader.kind.has_choices else None}
    samples = raw.get("samples")
    if isinstance(samples, list) and not reader.kind.one_choice:
        fields["samples"] = [_sample(entry, reader) for entry in samples]
    return fields


def _sample(entry: Any, reader: ValueReader) -> str | None:
    value, _ = reader(entry)
    return None if value is None else as_text(value)
