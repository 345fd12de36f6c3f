"""Have a source answer for items, each of them once and paid once, however often the work is taken up again.

One loop, `_Predicting.run`: money is set aside for the items that come next, the model is asked about them,
and each group of its answers is stored together with what it cost. routing.runs.budget has the money, and
routing.runs.predictions the rows that are stored.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation import failures
from annotation.common.ranges import of_items
from annotation.jobs.context import JobContext, JobPausedError
from annotation.models import Item
from annotation.words import Words
from routing.common.sql import analyse_tables
from routing.models import FrozenSource, ItemScore, Prediction, Spend
from routing.runs.budget import BudgetError, BudgetReservation, mark_abandoned_as_lost, owner_column
from routing.runs.predictions import MixedModelsError, PredictionRows, store_answers
from routing.runs.score import score_of, store_scores
from routing.runs.source_changes import STOPPED, has_changed
from routing.sources.backend_for import frozen_backend
from routing.sources.backends import Backend, BackendError
from routing.sources.backends.base import Answered
from routing.sources.charging import Charge
from routing.sources.mends import reader_for

# Items that are read from the database at a time.
PAGE = 1_000
# Ids in one statement.
MANY = 10_000


@dataclass(frozen=True)
class PendingItems:
    """Items that a source is to answer for: rows of any table that name one as `item`. None is named by two
    of these.
    """

    rows: Sequence[QuerySet[Any]]

    @cached_property
    def count(self) -> int:
        return sum(part.count() for part in self.rows)

    def without_answer(self, frozen_source: FrozenSource) -> NDArray[np.int64]:
        """Ids of those that have none under the frozen fingerprint, ascending.

        Read once, 8 bytes for each: a query per page would find out about all of them again and again.
        """
        answered = Prediction.objects.filter(
            item=OuterRef("item"), source=frozen_source.source_id, fingerprint=frozen_source.fingerprint
        )
        missing = [
            part.filter(~Exists(answered)).order_by().values_list("item", flat=True) for part in self.rows
        ]
        ids = (item for part in missing for item in part.iterator(chunk_size=10_000))
        return np.sort(np.fromiter(ids, dtype=np.int64))


@dataclass(frozen=True)
class NamedItems:
    """The same of items that the caller knows by their keys."""

    ids: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.ids)

    def without_answer(self, frozen_source: FrozenSource) -> NDArray[np.int64]:
        """Ids of those that have none under the frozen fingerprint, ascending."""
        left = []
        for start in range(0, len(self.ids), MANY):
            part = self.ids[start : start + MANY].tolist()
            rows = Prediction.objects.filter(
                of_items("item", part), source=frozen_source.source_id, fingerprint=frozen_source.fingerprint
            )
            left.append(np.setdiff1d(part, list(rows.values_list("item", flat=True))))
        return np.sort(np.concatenate(left)).astype(np.int64) if left else np.zeros(0, dtype=np.int64)


NO_ANSWER = failures.register(
    "answers_missing",
    gettext_noop(
        "The model gave no answer for %(missing)s of the items that it was asked for. What it did answer is "
        "stored."
    ),
)
NOT_ASKED = failures.register(
    "answer_not_asked_for",
    gettext_noop(
        "The model gave an answer for the item %(item)s that it was not asked for, or gave it twice. Nothing "
        "of this answer was stored."
    ),
)


def on_calibration_set(name: str) -> Words:
    """What a job says while a later model answers for items that people are asked about."""
    return Words(gettext_noop("%(source)s on the calibration set"), source=name)


def predict_band(
    context: JobContext, run_source: FrozenSource, items: PendingItems | NamedItems, done: int
) -> int:
    """Have a later model answer the items that are routed to it, as `predict_missing` does."""
    with context.chunk(total=done + items.count):
        pass
    return predict_missing(
        context,
        frozen_source=run_source,
        items=items,
        stage=Spend.Stage.ROUTED.value,
        says=Words(gettext_noop("%(source)s on its band"), source=run_source.source.name),
        done=done,
    )


def predict_missing(
    context: JobContext,
    *,
    frozen_source: FrozenSource,
    items: PendingItems | NamedItems,
    stage: str,
    says: Words,
    done: int,
) -> int:
    """Predict for those of `items` that have no answer under the frozen fingerprint; returns how many items
    have one then.

    `stage` is where the ledger puts the money, `says` what the job says that it is doing, `done` the job's
    count before. The model is called outside any transaction. Each group of answers is committed, with its
    scores, payment and progress, before the model is asked for more: a worker that is killed loses the calls
    in flight and nothing else.

    Raises JobFailedError where the source is no longer what was frozen and where the budget has no room
    for the next item, BackendError where the source cannot answer, JobPausedError where the job is to pause.
    """
    ids = items.without_answer(frozen_source)
    left = len(ids)
    # What is there already from an earlier attempt counts as done.
    there = items.count - left
    with context.chunk(done=done + there, stage=says):
        mark_abandoned_as_lost(context, frozen_source.budget_owner)
    if not left:
        return there
    if has_changed(frozen_source):
        raise STOPPED.error(source=frozen_source.source.name)
    with context.chunk():
        money = BudgetReservation(context, frozen_source, stage)
    predicting = _Predicting(context, frozen_source, ids, stage=stage, money=money, done=done + there)
    predicting.run()
    analyse_tables(Prediction, ItemScore, new=left)
    return predicting.done - done


class _Predicting:
    """The loop: reserve -> ask -> store."""

    def __init__(
        self,
        context: JobContext,
        frozen_source: FrozenSource,
        ids: NDArray[np.int64],
        *,
        stage: str,
        money: BudgetReservation,
        done: int,
    ) -> None:
        self.done = done
        self._context, self._frozen_source, self._stage, self._money = context, frozen_source, stage, money
        self._backend: Backend = frozen_backend(frozen_source)
        self._score = score_of(frozen_source.budget_owner, frozen_source)
        self._reader = reader_for(frozen_source.source)
        self._rows = PredictionRows(frozen_source, self._reader)
        self._items = ReservedItems(
            context, ids, backend=self._backend, charge=self._rows.charge, money=money
        )
        # What is set aside for the answers that are about to be stored.
        self._arrived: list[Decimal] = []

    def run(self) -> None:
        try:
            while self._items.reserve():
                groups = self._backend.predict(self._items)
                try:
                    for group in groups:
                        self._store(group)
                finally:
                    if close := getattr(groups, "close", None):
                        close()
                self._refuse_missing()
                # It ended before its items did: it is to pause, or what it paid may have left room.
                self._context.stop_if_asked()
        except (BackendError, BudgetError, JobPausedError):
            # The model has given all the answers that it will be paid for.
            with self._context.chunk():
                self._money.release()
            raise
        except Exception:
            self._money.lose([*self._arrived, *self._items.under_way])
            raise

    def _store(self, group: Sequence[Answered]) -> None:
        """Commit a group with everything that belongs to it, and set money aside for the items that follow.

        Raises JobLostError, nothing being stored, where this worker no longer has the job.
        """
        rows, mixed = [], None
        for item, answer in group:
            try:
                rows.append(self._rows.of(item, answer))
                self._arrived.append(self._items.take_back(item))
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
        self._items.read_on()
        with self._context.chunk(done=self.done + len(rows)):
            store_answers(rows)
            store_scores(rows, self._score, self._reader)
            _pay(rows, paid, self._frozen_source, self._stage)
            self._money.settle(self._arrived, paid)
            self._items.set_aside()
            self._money.store()
        self._arrived = []
        self.done += len(rows)

    def _refuse_missing(self) -> None:
        """Raise BackendError where the model ended without an answer for each item that it took."""
        if missing := len(self._items.under_way):
            raise NO_ANSWER.error(raised_as=BackendError, missing=missing)


class ReservedItems(Iterator[Item]):
    """The items that the model is asked about, handed out one by one, money set aside for each before.

    They are read from the database page by page as they are wanted, in the order of `ids`. No more than the
    backend's `in_flight` have money set aside at a time; the items that it answers free the places of the
    next ones. It ends, and can be gone on with, when the job is to pause or the budget has no room.
    """

    def __init__(
        self,
        context: JobContext,
        ids: NDArray[np.int64],
        *,
        backend: Backend,
        charge: Charge,
        money: BudgetReservation,
    ) -> None:
        self._context, self._ids, self._money = context, ids, money
        self._backend, self._charge = backend, charge
        self._read: deque[tuple[Item, Decimal | None]] = deque()
        self._ready: deque[tuple[Item, Decimal]] = deque()
        self._outstanding: dict[int, Decimal] = {}
        self._place = 0

    def reserve(self) -> bool:
        """Whether there is something to ask for, with money for at least one item set aside.

        Raises JobPausedError where the job is to pause, and BudgetError where nothing is under way and the
        budget has no room for the next item.
        """
        if self._ready or self._reserved():
            return True
        self._context.stop_if_asked()
        if self._read:
            raise self._money.budget_error(self._most(self._read[0][1]))
        return False

    def __next__(self) -> Item:
        if self._context.pausing or not (self._ready or self._reserved()):
            raise StopIteration
        item, most = self._ready.popleft()
        self._outstanding[item.pk] = most
        return item

    @property
    def under_way(self) -> list[Decimal]:
        """What is set aside for each of the items that were handed out and not taken back."""
        return list(self._outstanding.values())

    def take_back(self, item: Item) -> Decimal:
        """An answer for the item is being stored; returns what was set aside for it. Raises BackendError
        where the item was not handed out, or is answered a second time.
        """
        most = self._outstanding.pop(item.pk, None)
        if most is None:
            raise NOT_ASKED.error(raised_as=BackendError, item=item.external_id)
        return most

    def _reserved(self) -> bool:
        self.read_on()
        if self._read:
            with self._context.chunk():
                self.set_aside()
                self._money.store()
        return bool(self._ready)

    def read_on(self) -> None:
        """Read as many items as may be handed out next. Outside any transaction."""
        wanted = self._backend.in_flight - len(self._outstanding) - len(self._ready)
        while len(self._read) < wanted and self._place < len(self._ids):
            page = self._ids[self._place : self._place + PAGE].tolist()
            self._place += len(page)
            rows = Item.objects.filter(of_items("pk", page)).select_related("image")
            found = {item.pk: item for item in rows}
            self._read.extend(
                (found[pk], self._charge.most(self._backend.most_usage(found[pk])))
                for pk in page
                if pk in found
            )

    def set_aside(self) -> None:
        """Set money aside for what may be handed out next. Called inside a chunk, after `read_on`."""
        places = self._backend.in_flight - len(self._outstanding) - len(self._ready)
        candidates = [self._most(most) for _, (_item, most) in zip(range(places), self._read, strict=False)]
        if candidates and not self._context.pausing:
            for amount in candidates[: self._money.take(candidates)]:
                item, _ = self._read.popleft()
                self._ready.append((item, amount))

    def _most(self, most: Decimal | None) -> Decimal:
        return self._charge.expected if most is None else most


def _pay(rows: Sequence[Prediction], paid: Decimal, frozen_source: FrozenSource, stage: str) -> None:
    first = rows[0]
    Spend.objects.create(
        project_id=first.item.project_id,
        **owner_column(frozen_source.budget_owner),
        source_id=frozen_source.source_id,
        stage=stage,
        quantity=len(rows),
        amount=paid,
        # An item is the first of at most one group, because it is predicted once under a fingerprint.
        key=f"predict:{frozen_source.source_id}:{frozen_source.fingerprint[:40]}:{first.item_id}",
    )
