"""Predictions that came with the import, read from its columns."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item
from routing.backends.base import COST as KNOWN_COST
from routing.backends.base import Answer, Answered, digest, in_chunks, refuse_unknown, text_param
from routing.backends.cells import decimal_cell, label_numbers, listed, numbers
from routing.backends.context import SourceContext
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT

LABEL, COST = "label_column", "cost_column"
SCORE_COLUMNS = {
    "confidence_column": "confidence",
    "uncertainty_column": "uncertainty",
    "probabilities_column": "probabilities",
    "label_logprobs_column": "label_logprobs",
    "token_probabilities_column": "token_probabilities",
    "token_logprobs_column": "token_logprobs",
    "samples_column": "samples",
    "verbalized_column": "verbalized",
}
"""Param -> field of `Answer.raw` that scores read."""
USAGE_COLUMNS = {
    "tokens_in_column": TOKENS_IN,
    "tokens_out_column": TOKENS_OUT,
    "seconds_column": SECONDS,
}
FINISH = "finish_reason_column"
PARAMS = (LABEL, *SCORE_COLUMNS, *USAGE_COLUMNS, FINISH, COST)
# The score of a source that names no other: the first whose column is there.
SCORES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("recorded", ("confidence", "uncertainty")),
    ("label_probability", ("probabilities", "label_logprobs")),
    ("logits", ("token_probabilities", "token_logprobs")),
    ("ensemble", ("samples",)),
    ("verbalized", ("verbalized",)),
)
READERS = {
    "probabilities": label_numbers,
    "label_logprobs": label_numbers,
    "token_probabilities": numbers,
    "token_logprobs": numbers,
    "samples": listed,
    "verbalized": listed,
}
MAX_COUNT = 2**31 - 1
# What the column of costs holds.
PLACES = Decimal(1).scaleb(-10)


class Recorded:
    """`label_column` holds the label; the columns in `SCORE_COLUMNS` what scores are computed from, those in
    `USAGE_COLUMNS` what the call used, `finish_reason_column` why the model stopped, and `cost_column` what
    the answer cost."""

    # Nothing is in flight: so many are stored at a time.
    in_flight = 2_000

    def __init__(self, params: dict[str, Any], context: SourceContext | None = None) -> None:
        refuse_unknown(params, PARAMS)
        self.columns = {name: text_param(params, name, required=name == LABEL) for name in PARAMS}
        if self.columns["confidence_column"] and self.columns["uncertainty_column"]:
            raise InputError(
                _("Name a column of confidences or one of uncertainties, not both."),
                where="uncertainty_column",
            )

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(field for name, field in SCORE_COLUMNS.items() if self.columns[name])

    @property
    def usage(self) -> frozenset[str]:
        return frozenset(field for name, field in USAGE_COLUMNS.items() if self.columns[name])

    @property
    def default_score(self) -> str:
        return next((name for name, fields in SCORES if self.fields.intersection(fields)), "recorded")

    def check(self) -> dict[str, Any]:
        """Nothing beside the items is read."""
        return {}

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """Nothing is called: what an answer costs is known before it is asked for."""
        use = {field: self._usage(item, name) for name, field in USAGE_COLUMNS.items()}
        use[KNOWN_COST] = self._cost(item)
        return {field: value for field, value in use.items() if value is not None}

    def fingerprint(self) -> str:
        # Without the columns that are not named: what was recorded before a column could be keeps its hash.
        later = [name for name in PARAMS if name not in FIRST and self.columns[name]]
        return digest(
            backend="recorded",
            **{name.removesuffix("_column"): self.columns[name] for name in (*FIRST, *later)},
        )

    def hidden_columns(self) -> frozenset[str]:
        return frozenset(filter(None, self.columns.values()))

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for chunk in in_chunks(items, self.in_flight):
            yield [(item, self._answer(item)) for item in chunk]

    def _answer(self, item: Item) -> Answer:
        raw = {}
        for name, field in SCORE_COLUMNS.items():
            if column := self.columns[name]:
                cell = item.data.get(column, "")
                raw[field] = READERS[field](cell) if field in READERS else cell
        use = {field: self._usage(item, name) for name, field in USAGE_COLUMNS.items()}
        label, seconds = self.columns[LABEL], use[SECONDS]
        value = item.data.get(label)
        missing = value is None or value == ""
        return Answer(
            None if missing else str(value),
            f"no label in the column {label}"[:200] if missing else "",
            raw,
            tokens_in=_count(use[TOKENS_IN]),
            tokens_out=_count(use[TOKENS_OUT]),
            finish_reason=self._cell(item, FINISH).strip().lower()[:40],
            latency_ms=None if seconds is None else float(seconds) * 1_000,
            cost=self._cost(item),
        )

    def _cell(self, item: Item, name: str) -> str:
        column = self.columns[name]
        return str(item.data.get(column, "")) if column else ""

    def _usage(self, item: Item, name: str) -> Decimal | None:
        return decimal_cell(self._cell(item, name))

    def _cost(self, item: Item) -> Decimal | None:
        """The recorded cost; where the cell holds none, the cost function of the source tells."""
        cost = decimal_cell(self._cell(item, COST))
        return None if cost is None else cost.quantize(PLACES)


FIRST = (LABEL, "confidence_column", "uncertainty_column", COST)


def _count(value: Decimal | None) -> int | None:
    """A number of tokens; None where it is no whole number that can be stored."""
    return int(value) if value is not None and value == int(value) and value <= MAX_COUNT else None
