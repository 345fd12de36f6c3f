"""What a run has committed to, read: for its certificate, and for whoever shows it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.models import StoredFile
from routing.core.calibration_rows import CalibrationRow
from routing.core.commitment import commitment_differences
from routing.core.plan import Plan
from routing.models import Commitment, Run
from routing.runs.ledger import linked_ledger

BEFORE_DRAW, BEFORE_LABELS = 1, 2

NOT_AS_COMMITTED = failures.register(
    "not_as_committed",
    gettext_noop(
        "What run %(run)s would certify is not what it committed to before its labels: %(what)s Nothing was "
        "certified."
    ),
)


def commitment_of(run: Run, number: int) -> Commitment | None:
    """One of the two, where it has been made."""
    return Commitment.objects.filter(run=run, number=number).first()


def first_hash(run: Run) -> str:
    """The hash of the first, "" of runs without one."""
    found = Commitment.objects.filter(run=run, number=BEFORE_DRAW).values_list("sha256", flat=True).first()
    return found or ""


def document_of(commitment: Commitment) -> dict[str, Any]:
    """The document itself."""
    found: dict[str, Any] = json.loads(commitment.document)
    return found


def committed_files(run: Run) -> tuple[StoredFile, str] | None:
    """``committed.jsonl`` and ``pilot.jsonl``: what the roots in the commitments are of; None of a run that
    made none.
    """
    both = list(run.commitments.select_related("items"))
    if len(both) < 2 or both[0].items is None:
        return None
    return both[0].items, "".join(one.pilot_lines for one in both)


def with_commitments(run: Run) -> dict[str, Any]:
    """What the certificate of a run holds of its commitments and of the ledger; nothing of a run without."""
    both = [commitment_of(run, number) for number in (BEFORE_DRAW, BEFORE_LABELS)]
    if None in both:
        return {}
    first, second = (document_of(one) for one in both if one is not None)
    return {
        "commitments": {"before_draw": first, "before_labels": second},
        "ledger": linked_ledger(run.project),
    }


def refuse_other_than_committed(
    run: Run, plan: Plan, document: Mapping[str, Any], rows: Sequence[CalibrationRow]
) -> None:
    """Raises JobFailedError where a certificate does not say what its run committed to: none is better than
    one that its own verifier refuses.
    """
    if "commitments" not in document:
        return
    if differences := list(commitment_differences(document, plan, rows)):
        raise NOT_AS_COMMITTED.error(run=run.number, what=differences[0])
