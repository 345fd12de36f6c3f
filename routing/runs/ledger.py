"""The ledger of alpha: what has been spent on items that a run shares with earlier ones, and all that a
project has spent, as entries that are linked by their hashes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.common.locks import locked_project
from annotation.errors import InputError
from annotation.models import Project
from routing.common.states import State
from routing.core.exact import plain
from routing.core.ledger import DRAW, FINAL_AUDIT, ledger_entry
from routing.core.plan import Plan
from routing.models import Certificate, Commitment, FinalAudit, LedgerEntry, PoolItem, Run
from routing.models.commitments import BEFORE_DRAW
from routing.runs.pool import pool_of


@dataclass(frozen=True)
class SpentAlpha:
    """`alpha` was charged when the draw of run `number` was stored, analysed or not; of that `final` when its
    final audit was drawn, a second certificate which may be false, too.
    """

    number: int
    alpha: Decimal
    state: str
    final: Decimal = Decimal(0)


def ledger(run: Run) -> list[SpentAlpha]:
    """What a run and the earlier runs whose pools share an item with it have spent, oldest first.

    Their sum bounds the probability that any of the certificates is false. A pool inherits the entries of
    the pools that it shares items with; for the target `population` those of every earlier run of the
    project. What was cancelled before anybody could know its draw has spent nothing.
    """
    earlier = list(_charged(run.project).filter(number__lt=run.number))
    return _spent_by(_entries(run, earlier))


def spent_before(project: Project, target: str) -> Decimal:
    """What draws so far have spent on items that a run with this target would cover if it started now."""
    drawn = list(_charged(project))
    runs = set[Run]()
    for run in reversed(drawn):
        pool = PoolItem.objects.filter(run=run, intake__isnull=True)
        shares = target == Run.Target.POPULATION or (
            run not in runs and pool.filter(item__in=pool_of(project, target).values("pk")).exists()
        )
        runs |= _entries(run, drawn) if shares else set()
    return total_of(_spent_by(runs))


def _charged(project: Project) -> QuerySet[Run]:
    """Its runs that were drawn, or cancelled when their draw could be known (`is_drawn_elsewhere`)."""
    committed = Commitment.objects.filter(run=OuterRef("pk"), number=BEFORE_DRAW)
    thrown_away = Q(Exists(committed), state=State.CANCELLED) & ~Q(draw_from=Run.DrawFrom.SYSTEM)
    return project.runs.filter(Q(draw__isnull=False) | thrown_away).order_by("number")


def refuse_without_promise(project: Project, plan: Plan) -> None:
    """Where earlier draws on these items leave nothing of the probability that a certificate would state."""
    spent = spent_before(project, plan.target)
    if spent + plan.alpha < 1:
        return
    raise InputError(
        _(
            "Earlier draws on these items have spent %(spent)s of alpha: with %(alpha)s more a certificate "
            "would say “with probability at least 0 %%”. Choose a smaller alpha, or put new items into a "
            "project of their own. A run with the target population takes in later items and spends nothing."
        )
        % {"spent": plain(spent), "alpha": plain(plan.alpha)},
        where="alpha",
    )


def _spent_by(runs: set[Run]) -> list[SpentAlpha]:
    drawn = set(FinalAudit.objects.filter(run__in=runs).values_list("run", flat=True))
    return [
        SpentAlpha(one.number, one.alpha + final, one.state, final)
        for one in sorted(runs, key=lambda run: run.number)
        for final in [one.final_alpha if one.pk in drawn else Decimal(0)]
    ]


def total_of(entries: Iterable[SpentAlpha]) -> Decimal:
    """Of all entries together."""
    return sum((entry.alpha for entry in entries), Decimal(0))


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


def linked_ledger(project: Project) -> list[dict[str, Any]]:
    """All entries of a project, as certificates hold them."""
    return list(
        LedgerEntry.objects.filter(project=project).order_by("number").values_list("document", flat=True)
    )


def ledger_head(project: Project) -> dict[str, Any]:
    """How many entries there are, and the hash of the last, "" of none."""
    last = LedgerEntry.objects.filter(project=project).order_by("number").last()
    return {"entries": last.number, "head": last.sha256} if last else {"entries": 0, "head": ""}


def charge_draw(run: Run, *, commitment: str) -> None:
    """Write down what the draw of a run spends. Call it in the transaction that stores the draw, or ends the
    run.
    """
    _lock(run.project)
    _catch_up(run)
    _append(run, DRAW, run.alpha, commitment)


def charge_final_audit(run: Run) -> None:
    """The same of its final audit, which names the certificate of its run."""
    _lock(run.project)
    _catch_up(run)
    certificate = Certificate.objects.filter(run=run).values_list("sha256", flat=True).first()
    if not LedgerEntry.objects.filter(run=run, kind=DRAW).exists():
        _append(run, DRAW, run.alpha, "")
    _append(run, FINAL_AUDIT, run.final_alpha, certificate or "")


def _lock(project: Project) -> None:
    """Nobody else writes an entry meanwhile."""
    locked_project(project.pk)


def _catch_up(run: Run) -> None:
    """Entries of draws from before there were any."""
    known = LedgerEntry.objects.filter(project=run.project)
    earlier = _charged(run.project).filter(number__lt=run.number)
    for other in earlier.exclude(pk__in=known.filter(kind=DRAW).values("run")):
        first = Commitment.objects.filter(run=other, number=BEFORE_DRAW).values_list("sha256", flat=True)
        _append(other, DRAW, other.alpha, first.first() or "")
    for audit in (
        FinalAudit.objects.filter(run__project=run.project, run__number__lt=run.number)
        .exclude(run__in=known.filter(kind=FINAL_AUDIT).values("run"))
        .select_related("run__certificate")
        .order_by("run__number")
    ):
        _append(audit.run, FINAL_AUDIT, audit.run.final_alpha, audit.run.certificate.sha256)


def _append(run: Run, kind: str, alpha: Decimal, commitment: str) -> None:
    head = ledger_head(run.project)
    entry = ledger_entry(
        number=head["entries"] + 1,
        run=run.number,
        kind=kind,
        alpha=alpha,
        target=run.target,
        pool=run.pool_hash,
        commitment=commitment,
        previous=head["head"],
    )
    LedgerEntry.objects.create(
        project=run.project,
        number=entry["number"],
        run=run,
        kind=kind,
        document=entry,
        sha256=entry["sha256"],
    )
