"""What uncertainty scores read of an answer, and which scores the answers of a source can give."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.value_reader import ValueReader, as_text
from annotation.errors import HypacError
from routing.core.scores import SCORES, ScoreKind, fields_read
from routing.models import Prediction, Source
from routing.sources.backend_for import backend_for
from routing.sources.mends import MendingReader
from routing.sources.storable import stored_reason

FIELDS = {
    "probabilities": gettext_lazy("class probabilities"),
    "label_logprobs": gettext_lazy("log-probabilities of the labels"),
    "token_probabilities": gettext_lazy("token probabilities"),
    "token_logprobs": gettext_lazy("log-probabilities of the tokens"),
    "verbalized": gettext_lazy("stated confidences"),
    "samples": gettext_lazy("several samples of each answer"),
    "confidence": gettext_lazy("confidences"),
    "uncertainty": gettext_lazy("uncertainties"),
}


def fields_of(row: Prediction, reader: ValueReader) -> dict[str, object]:
    """What scores read of a stored prediction; `reader` is that of its project."""
    reason = stored_reason(row.reason, row.reason_code, row.reason_quotes)
    return score_fields(row.raw, row.value, reason, row.finish_reason, reader)


def score_fields(
    raw: Mapping[str, Any], value: Any, reason: str, finish_reason: str, reader: ValueReader
) -> dict[str, object]:
    """What scores read of an answer with this canonical value, stored or not.

    Scores compare texts. Samples of one choice stay as they are spelled, because scores know the spellings;
    those of other task types are brought into the form of the answer, and one that cannot be read is None,
    which agrees with nothing.
    """
    fields = {**raw, "label": None if value is None else as_text(value), "reason": reason}
    fields |= {"finish_reason": finish_reason, "allowed": _allowed(raw, reader)}
    samples = raw.get("samples")
    if isinstance(samples, list) and not reader.kind.one_choice:
        fields["samples"] = [_sample(entry, reader) for entry in samples]
    return fields


def _allowed(raw: Mapping[str, Any], reader: ValueReader) -> Mapping[str, str] | None:
    """Spellings of labels, those of the answer included that a mend makes one."""
    if not reader.kind.has_choices:
        return None
    if not isinstance(reader, MendingReader):
        return reader.keys
    named = (raw.get(name) or () for name in ("probabilities", "label_logprobs", "samples"))
    return reader.keys_with(chain.from_iterable(part for part in named if isinstance(part, dict | list)))


def _sample(entry: Any, reader: ValueReader) -> str | None:
    value, _ = reader(entry)
    return None if value is None else as_text(value)


@dataclass(frozen=True)
class OfferedScore:
    """A score, and why the source cannot give it ("" where it can)."""

    kind: ScoreKind
    refusal: str


def offered_scores(source: Source) -> list[OfferedScore]:
    """Every score in the order of the registry, for a list from which one is chosen for a first source.

    Those that are made of others are offered where the source gives anything that one of them reads.
    """
    brings = backend_for(source).fields
    return [
        OfferedScore(kind, lacking_for(source, brings, [kind.reads or tuple(FIELDS)], kind.name))
        for kind in SCORES
    ]


def has_own_score(source: Source) -> bool:
    """Whether the answers of the source bring what the score of its backend reads."""
    backend = backend_for(source)
    needed = fields_read(backend.default_score, {})
    return not lacking_for(source, backend.fields, needed, backend.default_score)


def lacking_for(source: Source, brings: frozenset[str], needed: list[tuple[str, ...]], name: str) -> str:
    """What the answers of the source, which bring these fields, lack for the score, in a sentence."""
    for fields in needed:
        if not brings.intersection(fields):
            wanted = f" {_('or')} ".join(str(FIELDS.get(entry, entry)) for entry in fields)
            has = (
                f" {_('and')} ".join(str(words) for entry, words in FIELDS.items() if entry in brings)
                or "none of them"
            )
            if len(fields) == len(FIELDS):
                return _("The answers of %(source)s come with nothing that a score can be computed from.") % {
                    "source": source.name
                }
            return _(
                "The score %(name)r needs %(wanted)s, and the answers of %(source)s come with "
                "%(has)s. Choose another score, or change the source."
            ) % {"name": name, "wanted": wanted, "source": source.name, "has": has}
    return ""


def by_price(sources: list[Source]) -> list[Source]:
    """The cheapest first, of equal ones in their places: it is asked about every item. They stay as they are
    where the cheapest has no score by which its answers could be kept.
    """
    ordered = sorted(sources, key=lambda source: source.cost_per_label)
    try:
        return ordered if ordered == sources or has_own_score(ordered[0]) else sources
    except HypacError:
        return sources  # the outlook says what is wrong with the source
