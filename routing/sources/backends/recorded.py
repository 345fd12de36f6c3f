"""Predictions that came with the import, read from its columns."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.value_reader import ValueReason
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT
from routing.sources.backends.base import COST as KNOWN_COST, Answer, Answered, Backend, digest, in_chunks
from routing.sources.backends.cells import decimal_cell, label_numbers, listed, numbers
from routing.sources.backends.params import Column, Part, read_values
from routing.sources.source_context import SourceContext

NAME = "recorded"
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
MORE = Part(
    gettext_lazy("More columns"),
    gettext_lazy("probabilities, samples, tokens, time, cost"),
    opened_by="cost_function",  # which may need one of them
)


def _more(name: str, label: Any, help_text: Any) -> Column:
    return Column(name, label, help_text, nothing=gettext_lazy("None"), part=MORE)


PARAMS = (
    Column(
        LABEL,
        gettext_lazy("Column with its label"),
        required=True,
        nothing=gettext_lazy("Choose a column"),
        none_yet=gettext_lazy("Import the data first: its columns are what can be chosen here."),
    ),
    Column(
        "confidence_column",
        gettext_lazy("Column with its confidence"),
        gettext_lazy("From 0 to 1; 1 is sure."),
        nothing=gettext_lazy("None"),
        row="sure",
    ),
    Column(
        "uncertainty_column",
        gettext_lazy("or column with its uncertainty"),
        gettext_lazy("From 0 to 1; 0 is sure."),
        nothing=gettext_lazy("None"),
        row="sure",
    ),
    _more(
        "probabilities_column",
        gettext_lazy("Column with the probabilities of the labels"),
        gettext_lazy("A JSON object, or cat: 0.7; dog: 0.3. They may leave labels out."),
    ),
    _more(
        "label_logprobs_column",
        gettext_lazy("or with their logarithms"),
        gettext_lazy("The same, as natural logarithms."),
    ),
    _more(
        "token_probabilities_column",
        gettext_lazy("Column with the probabilities of the generated tokens"),
        gettext_lazy("A JSON list, or numbers separated by semicolons."),
    ),
    _more(
        "token_logprobs_column",
        gettext_lazy("or with their logarithms"),
        gettext_lazy("The same, as natural logarithms."),
    ),
    _more(
        "samples_column",
        gettext_lazy("Column with several answers to the item"),
        gettext_lazy("A JSON list, or labels separated by semicolons: how much they disagree is a score."),
    ),
    _more(
        "verbalized_column",
        gettext_lazy("Column with the confidences that the model stated"),
        gettext_lazy("A JSON list of its replies, or numbers separated by semicolons."),
    ),
    _more(
        "tokens_in_column",
        gettext_lazy("Column with the number of tokens read"),
        gettext_lazy("What an API counts as input."),
    ),
    _more(
        "tokens_out_column",
        gettext_lazy("Column with the number of tokens generated"),
        gettext_lazy("What an API counts as output, reasoning included."),
    ),
    _more(
        "seconds_column",
        gettext_lazy("Column with the seconds that the answer took"),
        gettext_lazy("Decimals are fine."),
    ),
    _more(
        FINISH,
        gettext_lazy("Column with the reason why the model stopped"),
        gettext_lazy("Where it says “length”, the answer was cut off and is not used."),
    ),
    _more(
        COST,
        gettext_lazy("Column with what the answer cost"),
        gettext_lazy("Where it is known item by item. It goes before the way of counting chosen below."),
    ),
)
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


class Recorded(Backend):
    """`label_column` holds the label; the columns in `SCORE_COLUMNS` what scores are computed from, those in
    `USAGE_COLUMNS` what the call used, `finish_reason_column` why the model stopped, and `cost_column` what
    the answer cost."""

    title = gettext_lazy("Answers that came with the data")
    params = PARAMS
    known_from = "columns"
    never_lost = True
    # Nothing is in flight: so many are stored at a time.
    in_flight = 2_000

    def __init__(self, params: dict[str, Any], context: SourceContext | None = None) -> None:
        self.columns: dict[str, str] = read_values(self.params, params)
        if self.columns["confidence_column"] and self.columns["uncertainty_column"]:
            raise InputError(
                _("Name a column of confidences or one of uncertainties, not both."),
                where="uncertainty_column",
            )

    @classmethod
    def for_a_try(cls, params: dict[str, Any], context: SourceContext) -> Backend:
        raise InputError(_("Its answers came with the data: there is nothing to ask a model."))

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(field for name, field in SCORE_COLUMNS.items() if self.columns[name])

    @property
    def usage(self) -> frozenset[str]:
        return frozenset(field for name, field in USAGE_COLUMNS.items() if self.columns[name])

    @property
    def default_score(self) -> str:
        return next((name for name, fields in SCORES if self.fields.intersection(fields)), "recorded")

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """Nothing is called: what an answer costs is known before it is asked for."""
        use = {field: self._usage(item, name) for name, field in USAGE_COLUMNS.items()}
        use[KNOWN_COST] = self._cost(item)
        return {field: value for field, value in use.items() if value is not None}

    def fingerprint(self) -> str:
        # Without the columns that are not named: what was recorded before a column could be keeps its hash.
        later = [name for name in self.columns if name not in FIRST and self.columns[name]]
        return digest(
            backend=NAME,
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
            ValueReason(f"no label in the column {label}"[:200], "no_answer") if missing else "",
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
