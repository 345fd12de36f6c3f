"""Filters, order and columns of the table of items: read from an address, and put into words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import limits
from annotation.common.replaced_labels import replaced_labels
from annotation.errors import InputError
from annotation.task_types import TASK_TYPES
from routing.items.filters import (
    FILTERS,
    NOBODY,
    PERSON,
    HiddenError,
    compares_stored_forms,
    conditions,
    names_of_sources,
)
from routing.items.sorts import DEFAULT, NAMES, SORTS
from routing.visibility import ViewPermission

Options = list[tuple[str, str]]
MAX_VALUE = 300

TITLES: dict[str, Promise] = {
    "q": gettext_lazy("Search in names and texts"),
    "stage": gettext_lazy("Where it is"),
    "label": gettext_lazy("Label that is delivered"),
    "by": gettext_lazy("Delivered label is by"),
    "human": gettext_lazy("Label by a person"),
    "annotator": gettext_lazy("Labelled by"),
    "flag": gettext_lazy("Flags"),
    "comment": gettext_lazy("Comments"),
    "differ": gettext_lazy("Different answers"),
    "same": gettext_lazy("Same content"),
    "answer": gettext_lazy("Answer of a source"),
    "sent": gettext_lazy("Sent to"),
    "u_from": gettext_lazy("Uncertainty from"),
    "u_to": gettext_lazy("Uncertainty up to"),
}
STAGES: dict[str, Promise] = {
    "labelled": gettext_lazy("Labelled by a person"),
    "unlabelled": gettext_lazy("Not labelled by a person"),
    "waiting": gettext_lazy("Waiting for a person"),
    "stuck": gettext_lazy("Nobody is left to label it"),
    "split": gettext_lazy("Label was split"),
    "disputed": gettext_lazy("Waiting for a reviewer: people disagree"),
    "unlabelable": gettext_lazy("Nobody can label it"),
    "withdrawn": gettext_lazy("No longer asked for"),
    "held_out": gettext_lazy("Held out: for practice, as gold, or to compare prompts"),
}
ORDERS: dict[str, Promise] = {
    "position": gettext_lazy("Order of import"),
    "-position": gettext_lazy("Last imported first"),
    "name": gettext_lazy("Name, A to Z"),
    "-name": gettext_lazy("Name, Z to A"),
    "-u": gettext_lazy("Most uncertain first"),
    "u": gettext_lazy("Least uncertain first"),
    "-label": gettext_lazy("Newest label first"),
    "label": gettext_lazy("Oldest label first"),
    "-time": gettext_lazy("Longest time spent first"),
    "time": gettext_lazy("Shortest time spent first"),
}
COLUMNS: dict[str, Promise] = {
    "label": gettext_lazy("Delivered label"),
    "by": gettext_lazy("Given by"),
    "u": gettext_lazy("Uncertainty"),
    "sent": gettext_lazy("Sent to"),
    "flags": gettext_lazy("Flags"),
    "when": gettext_lazy("Labelled"),
    "time": gettext_lazy("Time spent"),
}
OUTPUT_COLUMNS = {"u", "sent"}
SHOWN = ("label", "by", "u", "sent", "flags")
GALLERY = "gallery"
OFTEN = ("q", "stage", "label", "by")
OF_LABELS = frozenset({"label", "human", "answer"})


@dataclass(frozen=True)
class TableRequest:
    """What an address asks of the table.

    `refused` are titles of filters and orders that would tell what may not be seen now, `problems` what else
    could not be used, in words.
    """

    filters: dict[str, str]
    sort: str = DEFAULT
    columns: tuple[str, ...] = SHOWN
    run: int | None = None
    gallery: bool = False
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def query(self, *without: str, **more: str) -> str:
        """The address's part behind "?", without some filters or with something else in it."""
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in self.filters.items() if name not in without})
        if self.sort != DEFAULT:
            query["sort"] = self.sort
        if self.columns != SHOWN:
            query.setlist("col", list(self.columns))
        if self.run is not None:
            query["run"] = str(self.run)
        if self.gallery:
            query["look"] = GALLERY
        query.update(more)
        return query.urlencode()


@dataclass(frozen=True)
class Chip:
    """A filter that is in force, and the address without it; `color` is that of a label, where it is one."""

    name: str
    title: str
    value: str
    without: str
    color: str = ""


def run_of(data: QueryDict) -> int | None:
    text = data.get("run", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def table_request(data: QueryDict, permission: ViewPermission) -> TableRequest:
    """Whatever is in the address that cannot be used is left out and told."""
    filters, refused, problems = {}, [], []
    for name in FILTERS:
        value = data.get(name, "").strip()[:MAX_VALUE]
        if not value:
            continue
        try:
            conditions(permission, {name: value})
        except HiddenError:
            refused.append(str(TITLES[name]))
        except InputError as error:
            problems.append(f"{TITLES[name]}: {error.message}")
        else:
            filters[name] = value
    sort = data.get("sort", DEFAULT)
    if sort.removeprefix("-") == "u" and permission.run is None:
        refused.append(str(ORDERS[sort]) if sort in ORDERS else sort)
        sort = DEFAULT
    chosen = tuple(name for name in COLUMNS if name in data.getlist("col"))
    usual = tuple(name for name in SHOWN if permission.output or name not in OUTPUT_COLUMNS)
    return TableRequest(
        filters=filters,
        sort=sort if sort in NAMES else DEFAULT,
        columns=SHOWN if chosen in ((), usual) else chosen,
        run=run_of(data) if permission.run is not None else None,
        gallery=data.get("look") == GALLERY,
        refused=refused,
        problems=problems,
    )


def options(permission: ViewPermission) -> dict[str, Options]:
    """What can be chosen for each filter that is a choice; those that may not be used now are missing."""
    sources = list(names_of_sources(permission))
    people = permission.project.memberships.select_related("user").order_by("user__username")
    found: dict[str, Options] = {
        "stage": [
            (key, str(title))
            for key, title in STAGES.items()
            if key != "split" or replaced_labels(permission.project).split
        ],
        "by": [(PERSON, _("A person"))],
        "annotator": [
            (str(member.user_id), member.user.get_username()) for member in people[: limits.OPTIONS]
        ],
        "flag": [("open", _("Flagged")), ("resolved", _("Flag seen to"))],
        "comment": [("any", _("With a comment"))],
        "same": [("any", _("Also under another name"))],
    }
    if permission.run is not None:
        found["by"] += [*sources, (NOBODY, _("Nobody: no label yet"))]
        found["sent"] = [*sources, (PERSON, _("People"))]
    if compares_stored_forms(permission):
        found["differ"] = [("people", _("Between people"))]
        if permission.run is not None:
            found["differ"].append(("sources", _("Between sources")))
    if TASK_TYPES[permission.project.task_type].has_labels:
        choices = list(permission.project.choices.values_list("key", "name"))
        found["label"] = found["human"] = choices
        if permission.run is not None:
            found["answer"] = [
                (f"{position}:{key}", f"{name}: {title}")
                for position, name in sources
                for key, title in choices
            ][: limits.OPTIONS]
    return found


def chips(asked: TableRequest, known: Mapping[str, Options], permission: ViewPermission) -> list[Chip]:
    colors: dict[str, str] = {}
    if OF_LABELS & set(asked.filters):
        colors = dict(permission.project.choices.values_list("key", "color"))
    return [
        Chip(
            name,
            str(TITLES[name]),
            _words(known, name, value),
            asked.query(name),
            colors.get(_label_in(name, value), ""),
        )
        for name, value in asked.filters.items()
    ]


def fields(
    asked: TableRequest, known: Mapping[str, Options], permission: ViewPermission
) -> Iterator[dict[str, Any]]:
    """The fields of the form, in their order: a choice, a number or a text."""
    for name, title in TITLES.items():
        kind = "choice" if name in known else "number" if name in ("u_from", "u_to") else "text"
        if name == "answer" and kind == "text":
            continue
        if kind == "number" and permission.run is None:
            continue
        if name in ("sent", "differ") and not known.get(name):
            continue
        yield {
            "name": name,
            "title": title,
            "kind": kind,
            "options": known.get(name, []),
            "value": asked.filters.get(name, ""),
            "often": name in OFTEN,
        }


def orders(permission: ViewPermission) -> Options:
    return [
        (key, str(title))
        for key, title in ORDERS.items()
        if permission.run is not None or SORTS[key.removeprefix("-")].types[0] is not float
    ]


def columns(permission: ViewPermission) -> Options:
    return [
        (key, str(title)) for key, title in COLUMNS.items() if permission.output or key not in OUTPUT_COLUMNS
    ]


def _label_in(name: str, value: str) -> str:
    """The label that a filter names: the answer of a source is its position and the label."""
    return value.partition(":")[2] if name == "answer" else value if name in OF_LABELS else ""


def _words(known: Mapping[str, Options], name: str, value: str) -> str:
    return dict(known.get(name, [])).get(value, value)
