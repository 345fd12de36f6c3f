"""The way to a project, a page or an item by typing a part of its name."""

from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_noop

from annotation.common.access import PageRequest, signed_in
from annotation.models import User
from annotation.permissions import Access, access_to
from annotation.projects.manage import may_make_projects
from annotation.projects.queries import projects_of

MOST = 8
LONGEST = 200
# Name of the page, the action that it needs, its words, and others that somebody may type.
PAGES = (
    ("overview", "project.view", gettext_noop("Overview"), ""),
    ("annotate", "label", gettext_noop("Label"), ""),
    ("review", "review", gettext_noop("Review"), ""),
    ("agreement", "agreement.view", gettext_noop("Agreement"), ""),
    ("items", "items.view", gettext_noop("Items"), ""),
    ("import_upload", "items.import", gettext_noop("Import"), gettext_noop("data file upload CSV")),
    ("sources", "sources.edit", gettext_noop("Sources"), gettext_noop("models")),
    ("source_new", "sources.edit", gettext_noop("Add a model"), gettext_noop("source")),
    ("prices", "sources.edit", gettext_noop("Price list"), gettext_noop("costs")),
    ("plan", "runs.edit", gettext_noop("Plan"), gettext_noop("new run")),
    ("runs", "runs.view", gettext_noop("Runs"), gettext_noop("certificate")),
    ("deliveries", "deliveries.view", gettext_noop("Deliveries"), gettext_noop("export download labels")),
    ("members", "members.view", gettext_noop("People"), gettext_noop("invite members roles")),
    ("jobs", "jobs.view", gettext_noop("Background work"), gettext_noop("activity jobs")),
    ("audit", "audit.view", gettext_noop("Who did what"), gettext_noop("audit log")),
    ("project_settings", "project.edit", gettext_noop("Settings"), gettext_noop("guidelines labels")),
    ("project_manage", "project.duplicate", gettext_noop("Archive, copy or delete"), ""),
    ("connections", "connections.view", gettext_noop("Connections"), gettext_noop("buckets")),
    ("webhooks", "webhooks.view", gettext_noop("Webhooks"), ""),
)


@dataclass(frozen=True)
class Place:
    """`within` is the project that it belongs to, "" for none."""

    name: str
    url: str
    within: str = ""


@signed_in("GET")
def go(request: HttpRequest) -> HttpResponseBase:
    """Where `q` may lead to, from the project `in`. Only what the person may see is found."""
    asked = cast(PageRequest, request)
    typed = " ".join(request.GET.get("q", "").replace("\0", "").split())[:LONGEST]
    access = access_to(asked.user, request.GET.get("in", "")[:LONGEST])
    template = "annotation/projects/_go_places.html" if asked.htmx else "annotation/projects/go.html"
    context = {
        "typed": typed,
        "within": access.project.slug if access else "",
        "places": places(asked.user, access, typed),
    }
    return render(request, template, context)


def places(user: User, access: Access | None, typed: str) -> list[Place]:
    """At most a few of each kind: the item of that name, pages, then projects."""
    found = _in_project(access, typed) if access else []
    general = [(_("Projects"), "project_list"), (_("Your account"), "account")]
    if may_make_projects(user):
        general.append((_("New project"), "project_new"))
    found += [Place(name, reverse(page)) for name, page in general if _fits(typed, name)]
    others = projects_of(user, search=typed)
    if access:
        others = others.exclude(pk=access.project.pk)
    found += [Place(project.name, reverse("overview", args=[project.slug])) for project in others[:MOST]]
    return found


def _in_project(access: Access, typed: str) -> list[Place]:
    project = access.project
    found = []
    if typed and access.allows("items.view"):
        item = project.items.filter(external_id=typed).first()
        if item is not None:
            found.append(Place(item.external_id, reverse("item", args=[project.slug, item.pk]), project.name))
    for page, action, title, others in PAGES:
        words = (_(title), *([_(others)] if others else []))
        if access.allows(action) and _fits(typed, *words):
            found.append(Place(words[0], reverse(page, args=[project.slug]), project.name))
    if typed and access.allows("items.view"):
        address = f"{reverse('items', args=[project.slug])}?{urlencode({'q': typed})}"
        found.append(Place(_("Items with “%(text)s”") % {"text": typed}, address, project.name))
    return found


def _fits(typed: str, *words: str) -> bool:
    """Whether each word that was typed begins one of these."""
    known = " ".join(words).casefold().split()
    return all(any(word.startswith(part) for word in known) for part in typed.casefold().split())
