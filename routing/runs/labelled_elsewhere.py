"""Labels of the calibration set, and of the audit of later items, that people gave in another program, where
this server cannot see to it that they are given blind.
"""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import Label
from annotation.templatetags.hypac import number
from routing.models import Run


def calibration_labels_from_elsewhere(run: Run) -> int:
    """How many answers about the calibration set came from another program, whether corrected here or not."""
    return _found(run.calibration_batch_id).count()


def _found(batch: int | None) -> QuerySet[Label]:
    if not batch:
        return Label.objects.none()
    return Label.objects.filter(
        work_item__batch=batch, supersedes__isnull=True, idempotency_key__startswith=GIVEN_ELSEWHERE
    )


def elsewhere_in_words(run: Run) -> list[str]:
    """What everybody should know who relies on such labels, in a sentence."""
    count = calibration_labels_from_elsewhere(run)
    if not count:
        return []
    words = _(
        "Labels of the calibration set that people gave in another program: %(count)s. That nobody saw there "
        "what a model, or somebody else, had answered is not known here; the certificate rests on it."
    )
    if run.overlap > 1:  # an item may have several of these
        words = _(
            "Labels of the calibration set that people gave in another program: %(count)s, about %(items)s "
            "items. That nobody saw there what a model, or somebody else, had answered is not known here; "
            "the certificate rests on it."
        )
    items = _found(run.calibration_batch_id).values("work_item__item").distinct().count()
    return [words % {"count": number(count), "items": number(items)}]


def audit_elsewhere_in_words(run: Run) -> list[str]:
    """The same of the audit of later items."""
    count = _found(run.later_audit_batch_id).count()
    if not count:
        return []
    words = _(
        "Labels of this audit that people gave in another program: %(count)s. That nobody saw there what a "
        "model had answered is not known here."
    )
    return [words % {"count": number(count)}]
