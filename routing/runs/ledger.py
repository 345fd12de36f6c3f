"""The ledger of alpha: what has been spent on items that a run shares with earlier ones."""

from dataclasses import dataclass
from decimal import Decimal

from routing.models import FinalAudit, PoolItem, Run


@dataclass(frozen=True)
class LedgerEntry:
    """`alpha` was charged when the draw of run `number` was stored, analysed or not; of that `final` when its
    final audit was drawn, a second certificate which may be false, too.
    """

    number: int
    alpha: Decimal
    state: str
    final: Decimal = Decimal(0)


def ledger(run: Run) -> list[LedgerEntry]:
    """Entries of a run and of the earlier runs whose pools share an item with it, oldest first.

    Their sum bounds the probability that any of the certificates is false. A pool inherits the entries of
    the pools that it shares items with; for the target `population` those of every earlier run of the
    project.
    """
    earlier = list(run.project.runs.filter(number__lt=run.number).order_by("number"))
    runs = _entries(run, earlier)
    drawn = set(FinalAudit.objects.filter(run__in=runs).values_list("run", flat=True))
    return [
        LedgerEntry(one.number, one.alpha + final, one.state, final)
        for one in sorted(runs, key=lambda run: run.number)
        for final in [one.final_alpha if one.pk in drawn else Decimal(0)]
    ]


def _entries(run: Run, earlier: list[Run]) -> set[Run]:
    runs = {run}
    for other in reversed(earlier):
        if other in runs or other.number >= run.number:
            continue
        if run.target == Run.Target.POPULATION or _share_an_item(run, other):
            runs |= _entries(other, earlier)
    return runs


def _share_an_item(run: Run, other: Run) -> bool:
    # What the other one took in later was in no draw of its.
    drawn_from = PoolItem.objects.filter(run=other, intake__isnull=True)
    return PoolItem.objects.filter(run=run, item__in=drawn_from.values("item")).exists()
