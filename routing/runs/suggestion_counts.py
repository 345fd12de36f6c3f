"""What became of suggestions: how many labels were given with one in sight, and how many are the same."""

from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.models import Label
from annotation.templatetags.hypac import number, percent
from routing.models import Run

SHOWN = Label.Suggestion


@dataclass(frozen=True)
class SuggestionCounts:
    """Of the labels that count now: those whose annotator was shown a model's answer, and of these the ones
    that are the same. `labels` has those that people gave on routed items at all.
    """

    labels: int
    shown: int
    taken: int


def suggestion_counts(run: Run) -> SuggestionCounts | None:
    """None of a run that shows none."""
    if not run.suggestions:
        return None
    rows = Label.objects.filter(work_item__batch=run.routed_batch_id, superseded_by__isnull=True)
    found = rows.aggregate(
        labels=Count("pk"),
        shown=Count("pk", filter=Q(suggestion__in=[SHOWN.TAKEN, SHOWN.OTHER])),
        taken=Count("pk", filter=Q(suggestion=SHOWN.TAKEN)),
    )
    return SuggestionCounts(**found)


def suggestions_in_words(run: Run) -> list[str]:
    """What everybody should know who relies on the labels of such a run, in sentences."""
    counts = suggestion_counts(run)
    if counts is None:
        return []
    said = [
        _(
            "Whoever labels a routed item is shown what a model answered. These labels are not blind, and "
            "count as right like any that people give: what they let pass of the model's errors is not "
            "counted."
        )
    ]
    if counts.shown:
        words = _(
            "Labels that people gave on routed items: %(labels)s; with a suggestion in sight: %(shown)s; the "
            "same as suggested: %(taken)s (%(share)s)."
        )
        said.append(
            words
            % {
                "labels": number(counts.labels),
                "shown": number(counts.shown),
                "taken": number(counts.taken),
                "share": percent(counts.taken / counts.shown),
            }
        )
    return said
