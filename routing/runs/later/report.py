"""What pages, programs and data cards are told of later items."""

from dataclasses import dataclass

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _

from annotation.templatetags.hypac import number, percent
from routing.core.reference.audit import ALARM
from routing.models import Intake, Run
from routing.runs.audits import AuditState, computing_in_words
from routing.runs.labelled_elsewhere import audit_elsewhere_in_words
from routing.runs.later.audit import later_audit_state
from routing.runs.later.intakes import unfinished_intake
from routing.runs.later.items import new_items_of, objection_now, objection_to_later

COUNTED = 1_000
"""Waiting items are counted up to so many: pages ask again and again, and a million would take seconds."""


@dataclass(frozen=True)
class LaterReport:
    """Of a routed run whose target is the population.

    Attributes
    ----------
    waiting : int
        Items that it would take in now, counted up to `COUNTED`: where it is that many, there may be more.
    objection
        Why it takes in none now, in a sentence; "" where it can.
    unfinished
        What was begun and is gone on with; None where nothing is.
    intakes
        What it has taken in, oldest first.
    audit, audit_words
        None where there is none; and how it stands, in sentences in the language that is on.
    """

    waiting: int
    objection: str
    unfinished: Intake | None
    intakes: list[Intake]
    audit: AuditState | None
    audit_words: list[str]

    @property
    def more_wait(self) -> bool:
        """Whether more than `waiting` may wait."""
        return self.waiting == COUNTED


def later_report(run: Run) -> LaterReport | None:
    """None before the routing, and for another target."""
    if run.target != Run.Target.POPULATION or run.routed_at is None:
        return None
    open_to_more = not objection_to_later(run)
    audit = later_audit_of(run)
    return LaterReport(
        waiting=new_items_of(run).order_by()[:COUNTED].count() if open_to_more else 0,
        objection=objection_now(run),
        unfinished=unfinished_intake(run) if open_to_more else None,
        intakes=list(run.intakes.filter(finished_at__isnull=False).select_related("created_by")),
        audit=audit,
        audit_words=later_audit_in_words(run, audit),
    )


def later_audit_of(run: Run) -> AuditState | None:
    """None before the routing, and where there is no audit."""
    return later_audit_state(run) if run.routed_at and run.later_audit_share else None


def later_audit_in_words(run: Run, state: AuditState | None) -> list[str]:
    """How the audit stands, in sentences in the language that is on."""
    if state is None:
        return [
            _(
                "There is no audit of later items: that models err on them no more than on the items of the "
                "run is taken on trust."
            )
        ]
    share, epsilon = percent(run.later_audit_share or 0), percent(run.epsilon)
    if not run.later_size:
        return [
            _(
                "The audit begins with what is taken in: people label %(share)s of it, too, and it warns "
                "where the labels that are delivered differ on more than %(epsilon)s."
            )
            % {"share": share, "epsilon": epsilon}
        ]
    counts = {name: number(getattr(state, name)) for name in ("audited", "marked", "differ")}
    return [
        _(
            "Of the later items %(marked)s were marked for the audit, %(audited)s are looked at, and on "
            "%(differ)s of these people differ from what is delivered."
        )
        % counts,
        _(
            "The evidence that models differ from people on more than %(epsilon)s of the later items is "
            "%(wealth)s; at %(alarm)s it warns."
        )
        % {"epsilon": epsilon, "wealth": floatformat(state.wealth, 1), "alarm": floatformat(ALARM)},
        _(
            "It sounded an alarm: the run is marked invalid and takes in no more, and no certificate covers "
            "the later items. Start a new run for items like these."
        )
        if run.audit_alarm_at
        else _("It has sounded no alarm."),
        *computing_in_words(state),
        *audit_elsewhere_in_words(run),
    ]
