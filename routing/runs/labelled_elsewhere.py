"""Labels of the calibration set that people gave in another program, where this server cannot see to it that
they are given blind.
"""

from django.utils.translation import gettext as _

from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import Label
from annotation.templatetags.hypac import number
from routing.models import Run


def calibration_labels_from_elsewhere(run: Run) -> int:
    """How many answers about the calibration set came from another program, whether corrected here or not."""
    found = Label.objects.filter(
        work_item__batch=run.calibration_batch_id,
        supersedes__isnull=True,
        idempotency_key__startswith=GIVEN_ELSEWHERE,
    )
    return found.count() if run.calibration_batch_id else 0


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
