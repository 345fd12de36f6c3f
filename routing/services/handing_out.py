"""The items that a source has still to answer for, handed out one by one, money set aside for each before."""

from collections import deque
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.jobs import JobContext
from annotation.models import Item
from annotation.selectors.ranges import of_items
from routing.backends import Backend, BackendError
from routing.services.budget import Purse
from routing.services.charging import Charge

PAGE = 1_000


class HandOut(Iterator[Item]):
    """Read from the database page by page as they are wanted, in the order of `ids`.

    No more than the backend's `in_flight` have money set aside at a time; the items that it settles free the
    places of the next ones. It ends, and can be gone on with, when the job is to pause or the budget has no
    room.
    """

    def __init__(
        self, context: JobContext, ids: NDArray[np.int64], *, backend: Backend, charge: Charge, purse: Purse
    ) -> None:
        self._context, self._ids, self._purse = context, ids, purse
        self._backend, self._charge = backend, charge
        self._read: deque[tuple[Item, Decimal | None]] = deque()
        self._ready: deque[tuple[Item, Decimal]] = deque()
        self._outstanding: dict[int, Decimal] = {}
        self._place = 0

    def __next__(self) -> Item:
        if self._context.pausing or not (self._ready or self._reserve()):
            raise StopIteration
        item, most = self._ready.popleft()
        self._outstanding[item.pk] = most
        return item

    def more(self) -> bool:
        """Whether there is something to ask for, with money for at least one item set aside.

        Raises JobPausedError where the job is to pause, and JobFailedError where nothing is under way and the
        budget has no room for the next item.
        """
        if self._ready or self._reserve():
            return True
        self._context.stop_if_asked()
        if self._read:
            raise self._purse.too_small_for(self._most(self._read[0][1]))
        return False

    @property
    def under_way(self) -> list[Decimal]:
        """What is set aside for each of the items that were handed out and not settled."""
        return list(self._outstanding.values())

    def settle(self, item: Item) -> Decimal:
        """An answer for the item is being stored; returns what was set aside for it. Raises BackendError
        where the item was not handed out, or is answered a second time.
        """
        most = self._outstanding.pop(item.pk, None)
        if most is None:
            raise BackendError(
                _(
                    "The model gave an answer for the item %(item)s that it was not asked for, or "
                    "gave it twice. Nothing of this answer was stored."
                )
                % {"item": item.external_id}
            )
        return most

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
            for amount in candidates[: self._purse.take(candidates)]:
                item, _ = self._read.popleft()
                self._ready.append((item, amount))

    def _most(self, most: Decimal | None) -> Decimal:
        return self._charge.expected if most is None else most

    def _reserve(self) -> bool:
        self.read_on()
        if self._read:
            with self._context.chunk():
                self.set_aside()
                self._purse.store()
        return bool(self._ready)
