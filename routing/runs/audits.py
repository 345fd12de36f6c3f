"""What the audits after the certificate have in common: marked items are counted in an order that nobody
chooses, and only as far as nothing before them is open.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from routing.core.reference.audit import ALARM, AuditProcess
from routing.models import AuditedItem, Run

AT_ONCE, MOST_AT_ONCE = 50, 2_000
"""Marked items that are read together: few at first, as most often the next one is open, then more."""
OPEN, UNCOMPUTED = object(), object()
"""The outcome of a marked item for which an answer is missing, or the loss of its label."""


@dataclass(frozen=True)
class AuditState:
    """How far the audit of a run is.

    Attributes
    ----------
    marked : int
        Routed items that were marked for it.
    audited, differ : int
        Those that count so far, and on how many of them the delivered label differs.
    wealth : float
        W: at `ALARM` it warns.
    computing : bool
        Whether the next one waits for its loss, which a job computes.
    """

    marked: int
    audited: int
    differ: int
    wealth: float
    computing: bool = False

    @property
    def alarm(self) -> bool:
        return self.wealth >= ALARM


@dataclass(frozen=True)
class Counted:
    """What is kept with the run of the marked items that count so far, so that an answer need not read them
    again: the last of them, by place and item, how many there are, and the process. `computing` is not kept.
    """

    place: int = -1
    item: int = 0
    audited: int = 0
    differ: int = 0
    process: AuditProcess = field(default_factory=AuditProcess)
    computing: bool = False

    @classmethod
    def of(cls, run: Run) -> "Counted":
        kept = run.audit_found
        if kept is None:
            return cls()
        process = AuditProcess(tuple(kept["logs"]), kept["highest"])
        return cls(kept["place"], kept["item"], kept["audited"], kept["differ"], process)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "item": self.item,
            "audited": self.audited,
            "differ": self.differ,
            "logs": list(self.process.logs),
            "highest": self.process.highest,
        }


Outcomes = Callable[[Counted, int], list[tuple[int, int, object]]]
"""Of the next marked items after those that count, at most so many: place, item and `OPEN`, `UNCOMPUTED`,
None for what is no audit, or whether the delivered label differs.
"""


def state_of(run: Run, further: Callable[[Run, Counted], Counted]) -> AuditState:
    """What an audit has found so far by `further`; after an alarm as it was then."""
    counted = Counted.of(run) if run.audit_alarm_at else further(run, Counted.of(run))
    return AuditState(
        run.audited_items.count(),
        counted.audited,
        counted.differ,
        counted.process.highest,
        counted.computing,
    )


def computing_in_words(state: AuditState) -> list[str]:
    """That it waits for a loss, in a sentence in the language that is on; nothing where it does not."""
    if not state.computing:
        return []
    return [_("The loss of a label is still being computed; what comes behind it is counted after that.")]


def count_on(counted: Counted, outcomes: Outcomes, *, eta: float) -> Counted:
    """With the marked items after those that count, up to the first one that is open; `eta` is the share of
    differences that is accepted.
    """
    count = AT_ONCE
    while found := outcomes(counted, count):
        seen = list(takewhile(lambda one: one[2] not in (OPEN, UNCOMPUTED), found))
        differ = [outcome for _place, _item, outcome in seen if isinstance(outcome, bool)]
        if seen:
            counted = Counted(
                seen[-1][0],
                seen[-1][1],
                counted.audited + len(differ),
                counted.differ + sum(differ),
                counted.process.after(differ, eta),
            )
        if len(seen) < len(found):
            return replace(counted, computing=found[len(seen)][2] is UNCOMPUTED)
        if len(found) < count:
            break
        count = min(2 * count, MOST_AT_ONCE)
    return counted


def find_alarm(run: Run, item: int | None, further: Callable[[Run, Counted], Counted]) -> Counted | None:
    """Store how far the audit has come by `further`, after a label of the marked `item` or whatever else may
    let it go on. Returns what counts where that is an alarm, the first one of the run; else None. Call it in
    the transaction of what happened.
    """
    current = Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # one audited label after the other
    if current.audit_alarm_at is not None:
        return None
    before = Counted.of(current)
    if item is not None:
        place = AuditedItem.objects.values_list("place", flat=True).get(run=run, item=item)
        if (place, item) <= (before.place, before.item):
            before = Counted()  # a correction of one that counts already: all from the beginning
    counted = further(current, before)
    Run.objects.filter(pk=run.pk).update(audit_found=counted.document)
    if counted.process.highest < ALARM:
        return None
    Run.objects.filter(pk=run.pk).update(audit_alarm_at=timezone.now())
    return counted
