"""Rows of predictions, made from what models answered, and stored."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.bulk import copy_rows
from annotation.common.ranges import of_items
from annotation.common.value_reader import ValueReader
from annotation.errors import JobFailedError
from annotation.models import Item
from routing.core import reasons
from routing.models import FrozenSource, Prediction
from routing.sources import storable
from routing.sources.backends import Answer
from routing.sources.charging import Charge

CUT_OFF = "length"
# From so many rows on it pays to copy them and then to ask for their keys.
COPIED = 100

_STORED = [
    field
    for field in Prediction._meta.concrete_fields
    if not field.primary_key and field.name != "created_at"
]
_NAMES = [field.name for field in _STORED]
_VALUES = [field.attname for field in _STORED]


class MixedModelsError(JobFailedError):
    """A server changed its model in the middle of a run."""


MIXED = failures.register(
    "model_changed",
    gettext_noop(
        "Until now the model has answered as %(served)r, and now it answers as %(served_2)r. Its answer was "
        "not stored. Put the model back and start this job again; or cancel the run, name the new one in the "
        "source by that exact name, and plan another run."
    ),
)


class PredictionRows:
    """Makes rows of predictions from answers.

    A server that answers as another model than before is found out here, whatever its backend noticed: under
    one fingerprint there is one model.
    """

    def __init__(self, frozen_source: FrozenSource, reader: ValueReader) -> None:
        self.charge = Charge(frozen_source)
        self._source, self._fingerprint = frozen_source.source_id, frozen_source.fingerprint
        self._read = reader
        before = Prediction.objects.filter(source=self._source, fingerprint=self._fingerprint)
        named = before.exclude(served_model="").order_by("-pk").values_list("served_model", flat=True)
        self._served = named.first() or ""

    def of(self, item: Item, answer: Answer) -> Prediction:
        served = storable.text(answer.served_model, 200)
        if served and self._served and served != self._served:
            raise MIXED.error(raised_as=MixedModelsError, served=self._served, served_2=served)
        self._served = self._served or served
        value, reason = answer.value, answer.reason
        if answer.finish_reason == CUT_OFF:
            value, reason = None, reasons.CUT_OFF
        elif value is not None:
            value, reason = self._read(value)
        reason = "" if value is not None else reason or reasons.NO_ANSWER
        cost, cost_note = self.charge.cost(answer)
        return Prediction(
            item=item,
            source_id=self._source,
            fingerprint=self._fingerprint,
            value=value,
            reason=storable.text(reason, 200),
            **storable.reason_columns(reason),
            raw=storable.document(answer.raw),
            tokens_in=storable.count(answer.tokens_in),
            tokens_out=storable.count(answer.tokens_out),
            finish_reason=storable.text(answer.finish_reason, 40),
            latency_ms=answer.latency_ms,
            served_model=served,
            served_revision=storable.text(answer.served_revision, 200),
            cost=cost,
            cost_note=cost_note[:200],
        )


def store_answers(rows: Sequence[Prediction]) -> None:
    """Store predictions of one source under one fingerprint, and set their keys.

    Raises IntegrityError where the source has answered for an item before.
    """
    if len(rows) < COPIED:
        Prediction.objects.bulk_create(rows)
        return
    copy_rows(Prediction, _NAMES, ([getattr(row, name) for name in _VALUES] for row in rows))
    stored = Prediction.objects.filter(
        of_items("item", [row.item_id for row in rows]),
        source=rows[0].source_id,
        fingerprint=rows[0].fingerprint,
    )
    keys = dict(stored.values_list("item_id", "pk"))
    for row in rows:
        row.pk = keys[row.item_id]
