"""Markdown that somebody wrote and others see, so sanitised twice: no raw HTML in, few tags out.

What it makes is bounded by the length of the source: some lines of a table can stand for a hundred thousand
cells, and one long address can be named on every line.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import nh3
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from annotation.common import limits, markdown
from annotation.models import Item, Project

VERSION = 1
"""Of what `render` makes. Raise it with every change of that: what is stored is then made anew."""

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_TOKENS_PER_CHARACTER = 2  # a cell, of two characters at least, is three of them
_ATTRIBUTES_PER_CHARACTER = 20  # an aligned cell has seventeen characters of them
_CHARACTERS_PER_BRACKET = 8  # each is tried as a link, and what is in it, deeper and deeper
_SMALL = 1_000
_KEPT = 128
_parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


class TooMuchError(Exception):
    """The source makes far more than it holds, or takes far longer to read than it is long."""


def render(source: str) -> str | None:
    """HTML of `source` holding nothing but plain text structure: no images, styles, ids or event attributes.

    Headings are moved one level down, below the page's own. None for what is to be shown as plain text: it is
    longer than limits.GUIDELINES, makes far more than it holds, or takes far longer to read.
    """
    if len(source) > limits.GUIDELINES:
        return None
    try:
        tokens = _tokens(source)
    except TooMuchError:
        return None
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
        if token.type == "inline" and token.children:
            # An image would be fetched from wherever the writer names; its text stays.
            for child in token.children:
                if child.type == "image":
                    child.type, child.tag, child.nesting = "text", "", 0
    html = _parser.renderer.render(tokens, _parser.options, {})
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def render_document(source: str, address: Callable[[str], str | None]) -> str:
    """HTML of a document of ours. Its headings can be led to: their ids are "doc-" and what `anchor` says.

    `address` is told where each link leads, and says where it is to lead, or None: its words stay alone. What
    stands in for an image is its text. Headings keep their level. Raises TooMuchError.
    """
    tokens = _tokens(source)
    ids: list[str] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following:
            found = anchor(following.content)
            token.attrSet("id", f"doc-{found}-{ids.count(found)}" if found in ids else f"doc-{found}")
            ids.append(found)
        for child in token.children or ():
            if child.type == "image":
                child.type, child.tag, child.nesting = "text", "", 0
        token.children = _led(token.children, address) if token.children else token.children
    html = _parser.renderer.render(tokens, _parser.options, {})
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}} | {f"h{level}": {"id"} for level in range(2, 7)},
        url_schemes={"http", "https", "mailto"},
    )


def anchor(heading: str) -> str:
    """The address of a heading of Markdown, as code hosts make it: its words in lower case with hyphens."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def _led(spans: list[Token], address: Callable[[str], str | None]) -> list[Token]:
    kept, leads = [], True
    for span in spans:
        if span.type == "link_open":
            to = address(str(span.attrGet("href") or ""))
            leads = to is not None
            span.attrs = {"href": to or ""}
        if leads or not span.type.startswith("link_"):
            kept.append(span)
    return kept


@lru_cache(maxsize=_KEPT)
def render_cached(source: str) -> str | None:
    """The same, made once for as long as this process is asked for it again and again."""
    return render(source)


class _Tokens(list[Token]):
    """At most so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def append(self, token: Token) -> None:
        if len(self) >= self.most:
            raise TooMuchError
        super().append(token)


def _tokens(source: str) -> list[Token]:
    """Raises TooMuchError before more is made than a text of this length may hold."""
    if source.count("[") > _SMALL + len(source) // _CHARACTERS_PER_BRACKET:
        raise TooMuchError
    state = StateCore(source, _parser, {})
    state.tokens = _Tokens(_SMALL + _TOKENS_PER_CHARACTER * len(source))
    _parser.core.process(state)
    spans = (span for token in state.tokens for span in (token, *(token.children or ())))
    attributes = sum(len(str(value)) for span in spans for value in span.attrs.values())
    if attributes > _SMALL + _ATTRIBUTES_PER_CHARACTER * len(source):
        raise TooMuchError
    return state.tokens


# --- What of a text is shown --------------------------------------------------------------------------------


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
    html = project.guidelines_html if current else markdown.render_cached(text)
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
    html = markdown.render_cached(text)
    return None if html is None else _safe(html)


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 - markdown.render sanitises
