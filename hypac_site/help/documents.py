"""The documents of docs/ as the site shows them: which belongs to which page, and where their links lead."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from annotation.common.markdown import anchor, render_document

INDEX = "README"

# Document, or heading of one, and the names of the pages that it tells of. All others have the list.
_PAGES = {
    "quickstart": "overview project_list project_new project_sample",
    "labelling#giving-answers": "annotate annotate_mine practice",
    "labelling#review": "review review_decide review_flags",
    "labelling#agreement": "agreement",
    "labelling#guideline-rounds": "rounds round",
    "labelling#practice-and-gold-items": "held_out",
    "labelling#merging-and-splitting-labels": "label_set label_set_choose",
    "labelling#without-a-model": "people_run",
    "importing": "import_upload import_mapping import_fetch import_browse",
    "importing#the-table-of-items": "items item",
    "importing#changing-many-items": "items_change items_changed",
    "backends": "sources source_new source_edit source_predictions",
    "language-models#prompts": "source_prompt",
    "language-models#comparing-prompts": "candidates candidates_label candidate candidate_new",
    "language-models#trying-a-source": "source_try",
    "plans#what-a-model-costs": "prices price_edit",
    "plans": "plan run_plan",
    "plans#the-page-of-a-run": "runs run",
    "plans#the-figures-beside-a-certificate": "run_evidence",
    "people#progress": "progress",
    "plans#what-it-will-take": "source_health",
    "plans#the-certificate-on-a-page": "run_certificate_page",
    "deliveries": "deliveries",
    "people": "members member",
    "people#activity": "jobs job audit",
    "people#coming-in": "invitation_new",
    "people#whose-password-it-is": "account password",
    "people#two-step-log-in": "second_factor app_set_up app_remove passkey_new passkey_remove recovery_codes",
    "people#mail": "mail_confirm",
    "people#settings-of-a-project": "project_settings",
    "people#archive-copy-delete": "project_manage",
    "statistics#words": "glossary",
    "api#tokens": "tokens",
    "api#webhooks": "webhooks webhook webhook_new",
    "deployment#buckets-of-a-project": "connections connection_new connection_edit",
    "deployment#a-bucket-that-is-synchronised": "bucket_sync",
}
OF_PAGE = {page: place for place, pages in _PAGES.items() for page in pages.split()}


@dataclass(frozen=True)
class Document:
    title: str
    html: SafeString


def names() -> frozenset[str]:
    """Of all documents. None where the site was installed without them."""
    return frozenset(path.stem for path in _folder().glob("*.md"))


def address_of(place: str) -> str:
    """Of a document, or `document#heading`."""
    name, _, heading = place.partition("#")
    page = reverse("help_index") if name == INDEX else reverse("help_document", args=[name])
    return f"{page}#doc-{heading}" if heading else page


@lru_cache(maxsize=64)
def document(name: str) -> Document | None:
    """None where no document has this name."""
    if name not in names():
        return None
    source = (_folder() / f"{name}.md").read_text(encoding="utf-8")
    heading, _, rest = source.partition("\n")
    # A link that is called as the file that it leads to is called as what that is.
    rest = re.sub(r"\[([a-z-]+)\.md\]", lambda found: f"[{_title(found[1])}]", rest)
    html = render_document(rest, lambda link: _led(name, link))
    html = html.replace("<table>", '<div class="table-scroll"><table>').replace("</table>", "</table></div>")
    return Document(heading.lstrip("# "), mark_safe(html))  # noqa: S308 - render_document sanitises


def _led(name: str, link: str) -> str | None:
    """Where a link of the document `name` leads on the site; None: nowhere."""
    if link.startswith(("https:", "http:")):
        return link
    target, _, heading = link.partition("#")
    stem = target.removesuffix(".md") if target else name
    if stem not in names():
        return None
    return address_of(f"{stem}#{heading}" if heading and heading != anchor(_title(stem)) else stem)


def _title(name: str) -> str:
    if name not in names():
        return f"{name}.md"
    with (_folder() / f"{name}.md").open(encoding="utf-8") as lines:
        return lines.readline().strip("# \n")


def _folder() -> Path:
    return Path(settings.BASE_DIR) / "docs"
