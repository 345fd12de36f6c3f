"""Guidelines: Markdown by a manager, shown to others, so sanitised twice: no raw HTML in, few tags out."""

import nh3
from markdown_it import MarkdownIt

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


def render(source: str) -> str:
    """HTML of `source` holding nothing but plain text structure: no images, styles, ids or event attributes.

    Headings are moved one level down, below the page's own.
    """
    tokens = _parser.parse(source)
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
