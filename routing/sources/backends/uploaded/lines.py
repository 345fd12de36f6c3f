"""Lines of a file of answers: those of HyPAC, and those of the files that OpenAI's Batch API gives back."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop

from annotation.common.value_reader import ValueReader
from annotation.imports.faults import fault
from routing.sources.backends.llm import Generated, Sampling, answer_of
from routing.sources.backends.openai_api.completions import generated_in
from routing.sources.backends.openai_api.endpoint import usage_of
from routing.sources.backends.openai_batch.lines import read_result
from routing.sources.backends.uploaded.answers import SCORE_FIELDS, item_named, sent_from, stored_form
from routing.sources.source_context import TaskSpec

PREDICTIONS, OPENAI_BATCH = "predictions", "openai_batch"
FORMATS = (PREDICTIONS, OPENAI_BATCH)
ITEM = "external_id"
# What `manage.py write_batch` calls the items: their key, and a digest of what was asked.
_OURS = re.compile(r"([0-9]{1,18})-[0-9a-f]{24}")


@dataclass(frozen=True)
class Line:
    """An answer with the item that it is for: by its id in the project, or as one of our calls named it."""

    external_id: str
    answer: dict[str, Any]

    @property
    def key(self) -> int | None:
        """The item's key, if the id is one that `write_batch` gave."""
        found = _OURS.fullmatch(self.external_id)
        return int(found[1]) if found else None


def read_line(
    text: str, format_name: str, spec: TaskSpec, reader: ValueReader, *, id_field: str = ""
) -> Line:
    """An answer from a line; where no format is named, the line tells. `id_field` names the item where that
    is not `external_id`, in lines that have it; without it an `id` does, as in tables. Raises InputError,
    with the field.
    """
    entry = _object(text)
    if id_field and id_field in entry:
        entry[ITEM] = entry.pop(id_field)
    if (format_name or (OPENAI_BATCH if "custom_id" in entry else PREDICTIONS)) == PREDICTIONS:
        if "id" in entry and ITEM not in entry and "custom_id" not in entry:
            entry[ITEM] = entry.pop("id")
        sent = sent_from(entry, reader)
        return Line(sent.external_id, sent.answer)
    return _of_batch(entry, spec, reader)


def fields_in(answer: Mapping[str, Any]) -> frozenset[str]:
    """What scores can read of a stored answer."""
    return frozenset(answer.get("raw", ())).intersection(SCORE_FIELDS)


def _of_batch(entry: Mapping[str, Any], spec: TaskSpec, reader: ValueReader) -> Line:
    custom_id = item_named(entry, "custom_id")
    result = read_result(custom_id, entry)
    if result.body is None:
        words = gettext_noop(
            "There is no answer in it (%(reason)s). Have the model asked again, and send that."
        )
        raise fault(words, where="response", reason=result.reason)
    texts = generated_in(result.body)
    revision = result.body.get("system_fingerprint")
    answer = answer_of(
        texts[0],
        spec=spec,
        sampling=Sampling(structured="json" if _is_object(texts[0]) else "none", samples=len(texts)),
        usage=usage_of(result.body),
        samples=texts if len(texts) > 1 else (),
        served_model=str(result.body.get("model") or ""),
        served_revision=revision if isinstance(revision, str) else "",
    )
    stored = stored_form(answer)
    if answer.value is not None and reader(answer.value)[0] is None:
        stored |= {"label": None, "reason": "the answer is no label of the project"}
    return Line(custom_id, stored)


def _is_object(generated: Generated) -> bool:
    return generated.spoken.lstrip().startswith("{")


def _object(text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text, parse_constant=_refuse_constant)
        text.encode()
    except (ValueError, RecursionError):
        raise fault(gettext_noop("This line is no JSON.")) from None
    if not isinstance(entry, dict):
        raise fault(gettext_noop("This line is no JSON object ({...})."))
    return entry


def _refuse_constant(literal: str) -> None:
    raise ValueError(literal)
