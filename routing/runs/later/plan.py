"""The audit of later items as a part of a plan."""

from decimal import Decimal

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.core.losses import LOSSES, Loss, MeasuredElsewhere
from routing.core.reference.audit import DEFAULT_SHARE, LARGEST
from routing.models import Run
from routing.runs.plan_fields import PlanFields, refuse_too_fine


def later_audit_share_of(fields: PlanFields, loss: Loss) -> Decimal | None:
    """The share of later items that people look at, the default where none is given; None for another target
    than the population.

    Raises InputError, whose `where` is "later_audit_share".
    """
    given, where = fields.later_audit_share, "later_audit_share"
    if fields.target != Run.Target.POPULATION:
        if given is not None:
            raise InputError(
                _("Only the target “population” speaks of later items: leave this empty, or choose it."),
                where=where,
            )
        return None
    possible = counts_errors(loss) and float(fields.epsilon) < LARGEST
    if given is None:
        return Decimal(DEFAULT_SHARE) if possible else Decimal(0)
    refuse_too_fine(where, given)
    if not 0 <= given <= 1:
        raise InputError(_("Write a share from 0 to 1; 0 means no audit."), where=where)
    if given and not possible:
        raise InputError(_no_audit(), where=where)
    return given


def counts_errors(loss: Loss) -> bool:
    """Whether labels are right or wrong by this loss, and that is quickly seen: what the audit counts."""
    return loss.binary and loss.name in LOSSES and not isinstance(loss, MeasuredElsewhere)


def _no_audit() -> str:
    return _(
        "The audit of later items is for losses of HyPAC's own that call a label right or wrong, and for an "
        "epsilon below 0.95. Write 0, or choose another loss."
    )


def warning_of_later_audit(share: Decimal | None, loss: Loss) -> tuple[str, ...]:
    """What a plan should say of it, in sentences in the language that is on."""
    if share is None or share or counts_errors(loss):
        return ()
    if isinstance(loss, MeasuredElsewhere):
        words = _(
            "Later items are not audited, as nobody measures the losses of models' answers about them: that "
            "models do not get worse on them is taken on trust."
        )
        return (words,)
    return (
        _(
            "Later items are not audited, as that counts labels that are right or wrong, and this loss tells "
            "more: that models do not get worse on them is taken on trust."
        ),
    )
