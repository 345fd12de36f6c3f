"""What the API shows of items and labels: no score, no imported column, which may hold one, and no prediction
but what a plan shows as a suggestion to whoever labels.
"""

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from annotation.common.converters import LARGEST
from annotation.labelling.queue import LeasedItem
from annotation.models import Item, Label, ShownSuggestion

MAX_ID = LARGEST


class ItemBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True, help_text="Empty where the item is an image.")
    erased = serializers.BooleanField(help_text="Its content was erased: there is neither text nor image.")
    image = serializers.CharField(
        allow_null=True, help_text="Path of its bytes on this site; their SHA-256 is the last part."
    )


class LabelBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    item = serializers.IntegerField(help_text="Id of the item.")
    value = serializers.JSONField(help_text="In the form of the project's task type.")
    version = serializers.IntegerField(help_text="1, and one more with each correction.")
    comment = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class SuggestionBody(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="In the form of the project's task type.")
    source = serializers.CharField(help_text="Name of the model.")  # type: ignore[assignment]


class TaskBody(serializers.Serializer[Any]):
    """One item before one person."""

    work_item = serializers.IntegerField()
    item = ItemBody()
    name = serializers.CharField(help_text="Of the item, without folders: as the page shows it.")
    external_id = serializers.CharField(
        allow_null=True, help_text="The whole name; null for whoever may not list the items."
    )
    token = serializers.CharField(allow_blank=True, help_text="Goes with every answer about it.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="When the lease ends.")
    draft_value = serializers.JSONField(
        allow_null=True, help_text="An earlier answer that came too late to count."
    )
    correcting = LabelBody(allow_null=True, help_text="One's own label that is to be corrected.")
    suggestion = SuggestionBody(
        allow_null=True,
        help_text="What a model answered: of a routed item where the plan of its run shows that, else null.",
    )


def item_content(item: Item, slug: str) -> dict[str, Any]:
    """What people see of an item; `image` is the path of its image, or null."""
    image = item.image
    return {
        "id": item.pk,
        "text": item.text,
        "erased": item.erased_at is not None,
        "image": reverse("api_image", kwargs={"slug": slug, "sha256": image.sha256}) if image else None,
    }


def task_content(task: LeasedItem | None, slug: str, *, names_items: bool) -> dict[str, Any] | None:
    """`names_items`: whoever has it may list the items with their names, whose folders may tell classes."""
    if task is None:
        return None
    return {
        "work_item": task.work_item.pk,
        "item": item_content(task.item, slug),
        "name": task.item.short_name,
        "external_id": task.item.external_id if names_items else None,
        "token": task.token,
        "expires_at": task.expires_at,
        "draft_value": task.draft_value,
        "correcting": label_content(task.correcting) if task.correcting else None,
        "suggestion": _suggestion_content(task.suggestion),
    }


def _suggestion_content(shown: ShownSuggestion | None) -> dict[str, Any] | None:
    return None if shown is None else {"value": shown.value, "source": shown.source}


def label_content(label: Label) -> dict[str, Any]:
    return {
        "id": label.pk,
        "item": label.item_id,
        "value": label.value,
        "version": label.version,
        "comment": label.comment,
        "created_at": label.created_at,
    }
