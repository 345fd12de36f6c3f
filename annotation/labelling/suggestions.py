"""What a model answered, shown to whoever labels an item: where its batch suggests, and nowhere else.

Who was shown what is kept, as it was shown: so it stays the same in another window or after a pause, and each
label tells whether it is the same.
"""

from typing import Any

from django.db.models import QuerySet

from annotation.models import Label, Project, ShownSuggestion, WorkItem
from annotation.ports import routing_port


def suggestion_for(work_item: WorkItem, user_id: int) -> ShownSuggestion | None:
    """What this person is shown with the item before them; from now on it counts as shown."""
    if not work_item.batch.suggests:
        return None
    found = routing_port().suggestion(work_item=work_item)
    if found is None:
        return None
    shown, _new = ShownSuggestion.objects.get_or_create(
        work_item=work_item, user_id=user_id, defaults={"value": found.value, "source": found.source}
    )
    return shown


def shown_suggestion(work_item: WorkItem, user_id: int) -> ShownSuggestion | None:
    """What this person was shown before they answered, as long as it may be shown."""
    if not work_item.batch.suggests or routing_port().suggestion(work_item=work_item) is None:
        return None
    return _shown(work_item.pk, user_id).first()


def suggested_value(work_item_id: int, user_id: int) -> Any:
    """What this person was shown with the item; None where nothing was."""
    return _shown(work_item_id, user_id).values_list("value", flat=True).first()


def compare_with_suggestion(work_item: WorkItem, user_id: int, value: Any) -> str:
    """What an answer is beside what the person was shown: a member of `Label.Suggestion`."""
    if not work_item.batch.suggests:
        return Label.Suggestion.NONE
    shown = suggested_value(work_item.pk, user_id)
    if shown is None:
        return Label.Suggestion.NONE
    return Label.Suggestion.TAKEN if shown == value else Label.Suggestion.OTHER


def compare_correction(old: Label, value: Any) -> str:
    """The same of a value that is put in the place of `old`, by whomever, where one was shown with it: to
    the person who answered first.
    """
    if not old.suggestion:
        return Label.Suggestion.NONE
    first = Label.objects.filter(work_item=old.work_item_id, version=1).values("annotator")
    rows = ShownSuggestion.objects.filter(work_item=old.work_item_id, user__in=first)
    shown = rows.values_list("value", flat=True).first()
    return Label.Suggestion.TAKEN if shown == value else Label.Suggestion.OTHER


def suggests_now(project: Project) -> bool:
    """Whether items wait in the project that may come with a suggestion."""
    batches = project.work_batches.filter(suggests=True, locked_at__isnull=True, withdrawn_at__isnull=True)
    waiting = WorkItem.objects.filter(batch__in=batches, state__in=WorkItem.UNFINISHED)
    return waiting.exists()


def _shown(work_item_id: int, user_id: int) -> QuerySet[ShownSuggestion]:
    return ShownSuggestion.objects.filter(work_item=work_item_id, user=user_id)
