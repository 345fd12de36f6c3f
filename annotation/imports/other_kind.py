"""Images that come into a project of texts, or texts into one of images: allowed, and told."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop

from annotation.imports.rows import Candidate, RowMessage
from annotation.models import Project
from annotation.task_types import TASK_TYPES
from annotation.words import Words


def is_other_kind(project: Project, *, images: bool) -> bool:
    """Whether the project has items, and none of this kind, or is about images and these are texts."""
    items = project.items.all()
    if items.exists() and not items.filter(image__isnull=not images).exists():
        return True
    return not images and TASK_TYPES[project.task_type].on_images


def note_other_kind(project: Project, new: Sequence[Candidate]) -> list[RowMessage]:
    """What is said at the first item of an import, before any of it is in the project."""
    if not new or not is_other_kind(project, images=new[0].image is not None):
        return []
    if new[0].image is not None:
        words = gettext_noop(
            "Images were added to a text project: all its items were texts. Guidelines and models that are "
            "about texts are of no use for them. If that was not meant, take the import back."
        )
    else:
        words = gettext_noop(
            "Texts were added to an image project: its items are images. If that was not meant, take the "
            "import back."
        )
    return [RowMessage(new[0].number, new[0].where, Words(words))]
