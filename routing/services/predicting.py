"""Have a source answer for items, each of them once and paid once, however often the work is taken up
again."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.errors import JobFailedError
from annotation.jobs import JobContext, JobPausedError
from annotation.models import Item
from annotation.values import ValueReader, reader_of
from routing.backends import Answer, Backend, BackendError
from routing.backends.base import Answered
from routing.models import ItemScore, Prediction, RunSource, Spend
from routing.services import storable
from routing.services.budget import BudgetError, Purse, lose_what_others_left
from routing.services.charging import Charge
from routing.services.handing_out import HandOut
from routing.services.opened import open_source
from routing.services.run_sources import change_of
from routing.services.scoring import score_of
from routing.services.sql import analyse_tables
from routing.services.stored_answers import store_answers
from routing.services.stored_scores import store_scores

CUT_OFF = "length"
# After so many answers the database is told to look at them before it plans a statement over them.
MANY = 10_000


@dataclass(frozen=True)
class Wanted:
    """Items that a source is to answer for: rows of any table that name one as `item`. None is named by two
    of these.
    """

    rows: Sequence[QuerySet[Any]]

    @cached_property
    def count(self) -> int:
        return sum(part.count() for part in self.rows)

    def without_answer(self, run_source: RunSource) -> NDArray[np.int64]:
        """Ids of those that have none under the run's fingerprint, ascending.

        Read once, 8 bytes for each: a query per page would find out about all of them again and again.
        """
        answered = Prediction.objects.filter(
            item=OuterRef("item"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
        missing = [
            part.filter(~Exists(answered)).order_by().values_list("item", flat=True) for part in self.rows
        ]
        ids = (item for part in missing for item in part.iterator(chunk_size=10_000))
        return np.sort(np.fromiter(ids, dtype=np.int64))


def predict_missing(
    context: JobContext, *, run_source: RunSource, items: Wanted, stage: str, words: str, done: int
) -> int:
    """Predict for those of `items` that have no answer under the run's fingerprint; returns how many items
    have one then.

    `stage` is where the ledger puts the money, `words` what the job says that it is doing, `done` the job's
    count before. The model is called outside any transaction. Each group of answers is committed, with its
    scores, payment and progress, before the model is asked for more: a worker that is killed loses the calls
    in flight and nothing else.

    Raises JobFailedError where the source is no longer what the run froze and where the budget has no room
    for the next item, BackendError where the source cannot answer, JobPausedError where the job is to pause.
    """
    ids = items.without_answer(run_source)
    left = len(ids)
    # What is there already from an earlier attempt counts as done.
    there = items.count - left
    with context.chunk(done=done + there, stage=words):
        lose_what_others_left(context, run_source.run)
    if not left:
        return there
    if change := change_of(run_source):
        raise JobFailedError(
            _("%(change)s Put it back as it was and start this job again, or cancel the run.")
            % {"change": change}
        )
    with context.chunk():
        purse = Purse(context, run_source, stage)
    stream = _Stream(context, run_source, ids, stage=stage, purse=purse, done=done + there)
    stream.run()
    if left >= MANY:
        analyse_tables(Prediction, ItemScore)
    return stream.done - done


class _Stream:
    """Items to the backend, groups of answers back, and each group into the database."""

    def __init__(
        self,
        context: JobContext,
        run_source: RunSource,
        ids: NDArray[np.int64],
        *,
        stage: str,
        purse: Purse,
        done: int,
    ) -> None:
        project = run_source.run.project
        self.done = done
        self._context, self._run_source, self._stage, self._purse = context, run_source, stage, purse
        self._backend: Backend = open_source(run_source.source)
        self._score = score_of(run_source.run, run_source)
        self._reader = reader_of(project)
        self._rows = _Rows(run_source, self._reader)
        self._hand_out = HandOut(context, ids, backend=self._backend, charge=self._rows.charge, purse=purse)
        # What is set aside for the answers that are about to be stored.
        self._arrived: list[Decimal] = []

    def run(self) -> None:
        try:
            while self._hand_out.more():
                self._ask()
                # It ended before its items did: it is to pause, or what it paid may have left room.
                self._context.stop_if_asked()
        except (BackendError, BudgetError, JobPausedError):
            # The model has given all the answers that it will be paid for.
            with self._context.chunk():
                self._purse.release()
            raise
        except Exception:
            self._purse.lose([*self._arrived, *self._hand_out.under_way])
            raise

    def _ask(self) -> None:
        groups = self._backend.predict(self._hand_out)
        try:
            for group in groups:
                self._store(group)
        finally:
            if close := getattr(groups, "close", None):
                close()
        if missing := len(self._hand_out.under_way):
            raise BackendError(
                _(
                    "The model gave no answer for %(missing)s of the items that it was asked for. "
                    "What it did answer is stored."
                )
                % {"missing": missing}
            )

    def _store(self, group: Sequence[Answered]) -> None:
        """Commit a group with everything that belongs to it, and set money aside for the items that follow.

        Raises JobLostError, nothing being stored, where this worker no longer has the job.
        """
        rows, mixed = [], None
        for item, answer in group:
            try:
                rows.append(self._rows.of(item, answer))
                self._arrived.append(self._hand_out.settle(item))
            except MixedModelsError as error:
                mixed = error  # what the right model answered is stored all the same
        if not group:
            # It waits, for hours where a server takes batches: is the job still wanted?
            self._context.progress()
            self._context.stop_if_asked()
        if rows:
            self._commit(rows)
        if mixed:
            raise mixed

    def _commit(self, rows: Sequence[Prediction]) -> None:
        paid = sum((row.cost for row in rows), Decimal(0))
        self._hand_out.read_on()
        with self._context.chunk(done=self.done + len(rows)):
            store_answers(rows)
            store_scores(rows, self._score, self._reader)
            _pay(rows, paid, self._run_source, self._stage)
            self._purse.settle(self._arrived, paid)
            self._hand_out.set_aside()
            self._purse.store()
        self._arrived = []
        self.done += len(rows)


class _Rows:
    """Makes rows of predictions from answers.

    A server that answers as another model than before is found out here, whatever its backend noticed: under
    one fingerprint there is one model.
    """

    def __init__(self, run_source: RunSource, reader: ValueReader) -> None:
        self.charge = Charge(run_source)
        self._source, self._fingerprint = run_source.source_id, run_source.fingerprint
        self._read = reader
        before = Prediction.objects.filter(source=self._source, fingerprint=self._fingerprint)
        named = before.exclude(served_model="").order_by("-pk").values_list("served_model", flat=True)
        self._served = named.first() or ""

    def of(self, item: Item, answer: Answer) -> Prediction:
        served = storable.text(answer.served_model, 200)
        if served and self._served and served != self._served:
            raise MixedModelsError(
                _(
                    "Until now the model has answered as %(served)r, and now it answers as "
                    "%(served_2)r. Its answer was not stored. Put the model back and start this job "
                    "again; or cancel the run, name the new one in the source by that exact name, "
                    "and plan another run."
                )
                % {"served": self._served, "served_2": served}
            )
        self._served = self._served or served
        value, reason = answer.value, answer.reason
        if answer.finish_reason == CUT_OFF:
            value, reason = None, "the answer was cut off (finish_reason is 'length')"
        elif value is not None:
            value, reason = self._read(value)
        cost, cost_note = self.charge.cost(answer)
        return Prediction(
            item=item,
            source_id=self._source,
            fingerprint=self._fingerprint,
            value=value,
            reason=storable.text(reason or "no answer", 200) if value is None else "",
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


class MixedModelsError(JobFailedError):
    """A server changed its model in the middle of a run."""


def _pay(rows: Sequence[Prediction], paid: Decimal, run_source: RunSource, stage: str) -> None:
    first = rows[0]
    Spend.objects.create(
        project_id=first.item.project_id,
        run=run_source.run,
        source_id=run_source.source_id,
        stage=stage,
        quantity=len(rows),
        amount=paid,
        # An item is the first of at most one group, because it is predicted once under a fingerprint.
        key=f"predict:{run_source.source_id}:{run_source.fingerprint[:40]}:{first.item_id}",
    )
