"""What the API shows of items: no prediction, no score, and no imported column, which may hold either."""

from typing import Any

from django.urls import reverse

from annotation.models import Item, Label
from annotation.queue import Task


def item_content(item: Item, slug: str) -> dict[str, Any]:
    """What people see of an item; `image` is the path of its image, or null."""
    image = item.image
    return {
        "id": item.pk,
        "text": item.text,
        "image": reverse("image", kwargs={"slug": slug, "sha256": image.sha256}) if image else None,
    }


def task_content(task: Task | None, slug: str) -> dict[str, Any] | None:
    if task is None:
        return None
    return {
        "work_item": task.work_item.pk,
        "item": item_content(task.item, slug),
        "token": task.token,
        "expires_at": task.expires_at,
        "draft_value": task.draft_value,
        "correcting": label_content(task.correcting) if task.correcting else None,
    }


def label_content(label: Label) -> dict[str, Any]:
    return {
        "id": label.pk,
        "item": label.item_id,
        "value": label.value,
        "version": label.version,
        "comment": label.comment,
        "created_at": label.created_at,
    }
