"""What a page shows of texts that others stored: as Markdown or plain, and how much of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from annotation.common import limits, markdown
from annotation.models import Item, Project


@dataclass(frozen=True)
class ShownText:
    """`html` is sanitised; None: `text` is shown as it is, and so many `more` characters of it are not."""

    text: str
    html: SafeString | None = None
    more: int = 0


@dataclass(frozen=True)
class ShownItem:
    """A text, or named ones. `as_text`: some of it is too much for Markdown, as which the project shows its
    items; `more_fields` and `more` characters are not shown.
    """

    text: ShownText | None = None
    fields: list[tuple[str, ShownText]] = field(default_factory=list)
    as_text: bool = False
    more_fields: int = 0
    more: int = 0


def shown_guidelines(project: Project) -> ShownText:
    """What was made when they were stored; an earlier version of the site made something else, or nothing."""
    text = project.guidelines
    current = project.guidelines_version == markdown.VERSION
    html = project.guidelines_html if current else markdown.render_kept(text)
    if html:
        return ShownText(text, _safe(html))
    return ShownText(text[: limits.GUIDELINES], more=max(0, len(text) - limits.GUIDELINES))


def shown_item(item: Item, text_format: str) -> ShownItem:
    named = item.fields[: limits.ITEM_FIELDS] if item.fields else [("", item.text)]
    cut = list(_cut([(name, str(value)) for name, value in named]))
    as_markdown = text_format == Project.TextFormat.MARKDOWN
    render = as_markdown and sum(len(text) + more for _, text, more in cut) <= limits.MARKDOWN
    texts = [(name, ShownText(text, _html(text) if render else None)) for name, text, _ in cut]
    return ShownItem(
        text=None if item.fields else texts[0][1],
        fields=texts if item.fields else [],
        as_text=as_markdown and any(text.html is None for _, text in texts),
        more_fields=max(0, len(item.fields) - limits.ITEM_FIELDS),
        more=sum(more for _, _, more in cut),
    )


def _cut(named: list[tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
    """(name, text, characters left out), together no longer than HYPAC_MAX_CELL_CHARACTERS."""
    room = settings.HYPAC_MAX_CELL_CHARACTERS
    for name, text in named:
        yield name[: limits.NAME], text[:room], max(0, len(text) - room)
        room = max(0, room - len(text))


def _html(text: str) -> SafeString | None:
    html = markdown.render_kept(text)
    return None if html is None else _safe(html)


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 - markdown.render sanitises
