"""What other programs are told of runs (annotation.common.events): numbers and addresses, no label."""

from collections.abc import Mapping
from typing import Any

from annotation.common import events
from annotation.failures import Part
from routing.models import Certificate, Delivery, Run

CALIBRATION_DONE = "run.calibration_done"
# Codes of what an audit's alarm breaks, in routing.runs.expert.audit and routing.runs.later.audit.
ALARMS = ("audit_alarm", "later_audit_alarm")


def calibration_done(run: Run) -> None:
    _emit(run, CALIBRATION_DONE, key=str(run.pk))


def run_analysed(run: Run, *, certified: bool) -> None:
    _emit(run, "run.analysed", certified=certified)


def certificate_broken(run: Run, *, why: Part) -> None:
    """Programs are told the code of the reason alone: its parameters may name an item. What broke before
    there was a certificate, `run_analysed` tells: its certificate never held.
    """
    if certificate := Certificate.objects.filter(run=run).only("sha256", "certified").first():
        # Without thresholds nothing was promised, and an alarm has a letter of its own, to the same people.
        tells = certificate.certified and why["failure"] not in ALARMS
        letter = {"why": why} if tells else None
        data = {"certificate": certificate.sha256, "reason": why["failure"]}
        _emit(run, "certificate.broken", key=str(run.pk), letter=letter, **data)


def final_audit_broken(run: Run, *, sha256: str, reason: str) -> None:
    """Of the certificate of a final audit, which the run's own outlives: once, and without a letter."""
    data = {"certificate": sha256, "reason": reason}
    _emit(run, "certificate.broken", key=f"final audit of {run.pk}", letter=None, **data)


def run_committed(run: Run, *, number: int, sha256: str, ledger: Mapping[str, Any]) -> None:
    """The hash of one of the two commitments, and how many entries the ledger has, with the last one's hash:
    whoever keeps the message can show later that nothing behind it was changed.
    """
    _emit(run, "run.committed", commitment=number, sha256=sha256, ledger=dict(ledger))


def audit_alarm(run: Run, *, audited: int, differ: int) -> None:
    """The audit found more errors than were accepted, of people or on later items: `differ` of `audited`."""
    _emit(run, "run.audit_alarm", audited=audited, differ=differ)


def run_routed(run: Run, *, people: int) -> None:
    """`people` is the number of items that people are asked about."""
    _emit(run, "run.routed", people=people)


def run_completed(run: Run) -> None:
    """Again after each intake of later items, which may come every night: then without a letter."""
    _emit(run, "run.completed", letter_key=str(run.pk))


def delivery_made(delivery: Delivery, *, partial: bool) -> None:
    run = delivery.run
    data = {
        "run": run.number,
        "delivery": delivery.pk,
        "number": delivery.number,
        "rows": delivery.rows,
        "blanks": delivery.blanks,
        "partial": partial,
        "items": delivery.items,
        "since": delivery.since_id,
        # Their names alone: a value may be a label or a person.
        "filters": sorted(delivery.filters),
        "url": events.address(run.project, "deliveries", delivery.pk),
    }
    events.emit(project=run.project, event="delivery.made", data=data)


def _emit(
    run: Run,
    event: str,
    *,
    key: str = "",
    letter: Mapping[str, Any] | None = events.NO_MORE,
    letter_key: str = "",
    **data: Any,
) -> None:
    url = events.address(run.project, "runs", run.number)
    data = {"run": run.number, **data, "url": url}
    events.emit(project=run.project, event=event, data=data, key=key, letter=letter, letter_key=letter_key)
