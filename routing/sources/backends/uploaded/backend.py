"""Answers that were sent in before a run asks for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.ranges import of_items
from annotation.common.value_reader import ValueReason
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT
from routing.models import SentAnswer, SourceRevision
from routing.sources.backends.base import COST, Answer, Answered, Backend, digest, in_chunks
from routing.sources.backends.params import Text, read_values
from routing.sources.backends.recorded import SCORES
from routing.sources.backends.uploaded.answers import answer_in
from routing.sources.source_context import SourceContext

FIRST_REVISION = "1"
MOST_CHARACTERS = 200
PAGE = 1_000
NOTHING_SENT = ValueReason("no answer was sent for this item", "no_answer")


class Uploaded(Backend):
    """`model` and `revision` are what whoever sends the answers calls the model; answers are kept apart by
    both."""

    title = gettext_lazy("Answers that are sent in from outside")
    note = gettext_lazy(
        "Run the model wherever you like and send its answers as a file, here after saving or through the "
        "API. They are needed before a run begins."
    )
    params = (
        Text(
            "model",
            gettext_lazy("Name of the model"),
            gettext_lazy("As you call it: it stands in certificates and deliveries."),
            required=True,
            strip=True,
            most=MOST_CHARACTERS,
            form_name="declared_model",
        ),
        Text(
            "revision",
            gettext_lazy("Revision"),
            gettext_lazy(
                "Answers do not change: those of a newer version of the model are sent under a revision of "
                "their own. Empty: 1."
            ),
            strip=True,
            default=FIRST_REVISION,
            most=MOST_CHARACTERS,
            form_name="declared_revision",
        ),
    )
    known_from = "sent"
    never_lost = True

    # Nothing is in flight: so many are stored at a time.
    in_flight = 2_000
    usage: ClassVar[frozenset[str]] = frozenset({TOKENS_IN, TOKENS_OUT, SECONDS})

    def __init__(self, params: dict[str, Any], context: SourceContext | None = None) -> None:
        values = read_values(self.params, params)
        self.model: str = values["model"][:MOST_CHARACTERS]
        self.revision: str = values["revision"][:MOST_CHARACTERS]
        self._source = context.source if context else None
        self._page: dict[int, Any] = {}
        self._last = -1
        self._first = 0

    @classmethod
    def for_a_try(cls, params: dict[str, Any], context: SourceContext) -> Backend:
        raise InputError(_("Its answers are sent in from outside: there is nothing to ask a model."))

    @cached_property
    def sent_under(self) -> SourceRevision | None:
        """None as long as nothing was sent."""
        if self._source is None:
            return None
        found = SourceRevision.objects.filter(source=self._source, model=self.model, revision=self.revision)
        return found.first()

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(self.sent_under.fields) if self.sent_under else frozenset()

    @property
    def default_score(self) -> str:
        return next((name for name, fields in SCORES if self.fields.intersection(fields)), "recorded")

    def fingerprint(self) -> str:
        return digest(backend="uploaded", model=self.model, revision=self.revision)

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """Nothing is called: what an answer costs is known before it is asked for."""
        answer = self._answer(self._read_on(item.pk))
        use = {TOKENS_IN: answer.tokens_in, TOKENS_OUT: answer.tokens_out}
        known = {name: Decimal(count) for name, count in use.items() if count is not None}
        if answer.latency_ms is not None:
            known[SECONDS] = Decimal(str(answer.latency_ms)) / 1_000
        return known if answer.cost is None else {**known, COST: answer.cost}

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for chunk in in_chunks(items, self.in_flight):
            sent = self._sent([item.pk for item in chunk])
            yield [(item, self._answer(sent.get(item.pk))) for item in chunk]

    def _answer(self, sent: Any) -> Answer:
        return Answer(None, NOTHING_SENT) if sent is None else answer_in(sent)

    def _sent(self, ids: Sequence[int]) -> dict[int, Any]:
        if self.sent_under is None:
            return {}
        rows = SentAnswer.objects.filter(of_items("item", ids), revision=self.sent_under)
        return dict(rows.values_list("item_id", "answer"))

    def _read_on(self, item: int) -> Any:
        """The answer for an item. Items come in ascending order, so that a page is read at a time."""
        if self.sent_under is None:
            return None
        if not self._first <= item <= self._last:
            rows = SentAnswer.objects.filter(revision=self.sent_under, item__gte=item).order_by("item_id")
            self._page = dict(rows.values_list("item_id", "answer")[:PAGE])
            self._first = item
            # Behind the last row that was found there is nothing: a page that is not full holds all.
            self._last = max(self._page) if len(self._page) == PAGE else 2**63
        return self._page.get(item)
