"""The pages above the one that is shown: each beginning of its address that is a page."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from django.template import Context, Variable, VariableDoesNotExist
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.translation import gettext as _, gettext_noop

from annotation.common.access import ProjectRequest

# Which entry of the navigation a page belongs to, and what it is called among the others; n is the number in
# its address. The overview is called by the name of the project.
PAGES = {
    "progress": ("progress", gettext_noop("Progress")),
    "annotate": ("annotate", gettext_noop("Label")),
    "annotate_mine": ("annotate", gettext_noop("My labels")),
    "practice": ("annotate", gettext_noop("Practice")),
    "review": ("review", gettext_noop("Review")),
    "review_flags": ("review", gettext_noop("Flags")),
    "agreement": ("review", gettext_noop("Agreement")),
    "rounds": ("review", gettext_noop("Guideline rounds")),
    "round": ("review", gettext_noop("Round %(n)s")),
    "items": ("items", gettext_noop("Items")),
    "item": ("items", gettext_noop("Item")),
    "items_changed": ("items", gettext_noop("Change")),
    "import_upload": ("items", gettext_noop("Import")),
    "import_mapping": ("items", gettext_noop("Columns")),
    "sources": ("sources", gettext_noop("Sources")),
    "source_new": ("sources", gettext_noop("Add a model")),
    "source_edit": ("sources", gettext_noop("Model")),
    "source_health": ("sources", gettext_noop("Answers")),
    "source_prompt": ("sources", gettext_noop("Prompt")),
    "candidates": ("sources", gettext_noop("Compare prompts")),
    "candidates_label": ("sources", gettext_noop("Development items")),
    "candidate": ("sources", gettext_noop("Candidate %(n)s")),
    "candidate_new": ("sources", gettext_noop("Write another")),
    "source_try": ("sources", gettext_noop("Try it")),
    "source_predictions": ("sources", gettext_noop("Predictions")),
    "prices": ("sources", gettext_noop("Price list")),
    "price_edit": ("sources", gettext_noop("Price")),
    "runs": ("runs", gettext_noop("Runs")),
    "run": ("runs", gettext_noop("Run %(n)s")),
    "run_evidence": ("runs", gettext_noop("Evidence")),
    "run_plan": ("runs", gettext_noop("Plan")),
    "plan": ("runs", gettext_noop("Plan")),
    "people_run": ("runs", gettext_noop("People label everything")),
    "run_certificate_page": ("runs", gettext_noop("Certificate")),
    "deliveries": ("deliveries", gettext_noop("Deliveries")),
    "members": ("members", gettext_noop("People")),
    "member": ("members", gettext_noop("Person")),
    "held_out": ("members", gettext_noop("Practice and gold items")),
    "jobs": ("jobs", gettext_noop("Activity")),
    "job": ("jobs", gettext_noop("Background work")),
    "audit": ("jobs", gettext_noop("Who did what")),
    "project_settings": ("settings", gettext_noop("Settings")),
    "label_set": ("settings", gettext_noop("Labels")),
    "label_set_choose": ("settings", gettext_noop("Choose anew")),
    "project_manage": ("settings", gettext_noop("Archive, copy or delete")),
    "webhooks": ("settings", gettext_noop("Webhooks")),
    "webhook": ("settings", gettext_noop("Webhook")),
    "connections": ("settings", gettext_noop("Connections")),
    "connection_edit": ("settings", gettext_noop("Connection")),
    "bucket_sync": ("settings", gettext_noop("Synchronisation")),
}
# Where what is shown has a name of its own, and the page knows it.
NAMES = {
    "item": "item.external_id",
    "items_changed": "change.title",
    "source_edit": "source.name",
    "member": "person.user.username",
}


@dataclass(frozen=True)
class Crumb:
    words: str
    url: str
    is_current: bool = False


def crumbs(request: ProjectRequest, context: Context) -> list[Crumb]:
    """From the project to the page, which is the last. Pages that the person may not see are left out."""
    above = [
        Crumb(_words(match, request, context), url)
        for url, match in _pages(request.path, request.path_info)
        if match.url_name == "overview" or (match.url_name in PAGES and _may(request, match))
    ]
    # A form that comes back stands at an address below its page; where nothing is, there is no page.
    if above and (above[-1].url == request.path or (request.method == "POST" and request.resolver_match)):
        above[-1] = replace(above[-1], is_current=True)
    return above


def section(request: ProjectRequest) -> str:
    """The entry of the navigation that is marked, of the page or of the one that a form was sent from."""
    match = request.resolver_match
    if match is None:
        return ""
    names = [match.url_name or ""]
    if request.method == "POST":
        names += reversed([above.url_name or "" for _url, above in _pages(request.path, request.path_info)])
    of_pages = {"overview": "overview"} | {name: of for name, (of, _words) in PAGES.items()}
    return next((of_pages[name] for name in names if name in of_pages), "")


def _pages(path: str, path_info: str) -> Iterator[tuple[str, ResolverMatch]]:
    """(address, what is there) for each beginning of the address that ends with a stroke."""
    mounted = path.removesuffix(path_info)
    parts = [f"{part}/" for part in path_info.split("/")[:-1]]
    for beginning in accumulate(parts):
        try:
            yield mounted + beginning, resolve(beginning)
        except Resolver404:
            continue


def _may(request: ProjectRequest, match: ResolverMatch) -> bool:
    return "GET" in match.func.methods and request.access.allows(match.func.needed_action)  # type: ignore[attr-defined]


def _words(match: ResolverMatch, request: ProjectRequest, context: Context) -> str:
    name = match.url_name or ""
    if name == "overview":
        return request.access.project.name
    own = _named(context, NAMES[name]) if name in NAMES else None
    return str(own) if own else _(PAGES[name][1]) % {"n": match.kwargs.get("number")}


def _named(context: Context, name: str) -> Any:
    try:
        return Variable(name).resolve(context)
    except VariableDoesNotExist:
        return None
