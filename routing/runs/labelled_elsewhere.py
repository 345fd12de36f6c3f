"""Labels of the calibration set, and of the audit of later items, that people gave in another program, where
this server cannot see to it that they are given blind.
"""

from django.utils.translation import gettext as _

from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import Label
from annotation.templatetags.hypac import number
from routing.models import Run


def calibration_labels_from_elsewhere(run: Run) -> int:
    """How many answers about the calibration set came from another program, whether corrected here or not."""
    return _given_elsewhere(run.calibration_batch_id)


def _given_elsewhere(batch: int | None) -> int:
    found = Label.objects.filter(
        work_item__batch=batch,
        supersedes__isnull=True,
        idempotency_key__startswith=GIVEN_ELSEWHERE,
    )
    return found.count() if batch else 0


def elsewhere_in_words(run: Run) -> list[str]:
    """What everybody should know who relies on such labels, in a sentence."""
    count = calibration_labels_from_elsewhere(run)
    if not count:
        return []
    words = _(
        "Labels of the calibration set that people gave in another program: %(count)s. That nobody saw there "
        "what a model, or somebody else, had answered is not known here; the certificate rests on it."
    )
    return [words % {"count": number(count)}]


def audit_elsewhere_in_words(run: Run) -> list[str]:
    """The same of the audit of later items."""
    count = _given_elsewhere(run.later_audit_batch_id)
    if not count:
        return []
    words = _(
        "Labels of this audit that people gave in another program: %(count)s. That nobody saw there what a "
        "model had answered is not known here."
    )
    return [words % {"count": number(count)}]
