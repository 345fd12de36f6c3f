"""What the table of items can be narrowed down by: each filter as a condition on items.

A filter is a name and a text, as they stand in an address. What a filter looks at is what the person may see
(`ViewPermission`), so that no choice of filters tells more than the table would.
"""

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from annotation.common.value_reader import Value, as_text, reader_of
from annotation.errors import InputError
from annotation.labelling.label_queries import with_choice
from annotation.labelling.labels_of_record import unsettled
from annotation.models import Item, WorkItem
from annotation.task_types import TASK_TYPES
from routing.labels.conditions import by_model, by_person, delivered_as, needs_new_choice
from routing.models import PoolItem, Prediction, Route, RunSource
from routing.runs.covered_items import covered_items, covered_routes
from routing.runs.expert.delivered import labelled_by_experts
from routing.runs.pool import is_held_out
from routing.visibility import ViewPermission

MAX_TEXT = 200
# Of a project's labels so many are named to somebody who asked for another one.
MOST_NAMED = 50
STAGES = (
    "labelled",
    "unlabelled",
    "waiting",
    "stuck",
    "split",
    "disputed",
    "unlabelable",
    "withdrawn",
    "held_out",
)
PERSON, NOBODY, EXPERT, CHECKED = "person", "nobody", "expert", "checked"


class HiddenError(InputError):
    """The filter or order would tell what may not be seen now, or not by this person."""


Condition = Callable[[ViewPermission, str], Q]


def filtered(permission: ViewPermission, filters: Mapping[str, str], *, rare: bool = False) -> QuerySet[Item]:
    """The project's items that every filter lets through. `rare` words some conditions for a database that
    looks for a few among all items, instead of asking of each item.

    Raises InputError for an unknown filter or value, and HiddenError for one that would tell too much.
    """
    found = conditions(permission, filters)
    if rare:
        found |= {name: RARE[name](permission) for name in found if name in RARE}
    return permission.project.items.filter(*found.values()).order_by()


def conditions(permission: ViewPermission, filters: Mapping[str, str]) -> dict[str, Q]:
    """The condition of each filter by its name."""
    found = {}
    for name, value in filters.items():
        if name not in FILTERS:
            raise InputError(
                _("There is no such filter; choose one of %(names)s.") % {"names": ", ".join(FILTERS)},
                where=name,
            )
        found[name] = FILTERS[name](permission, value)
    return found


def _search(permission: ViewPermission, value: str) -> Q:
    if len(value) > MAX_TEXT or "\0" in value:
        raise InputError(_("Search for at most %(most)s characters.") % {"most": MAX_TEXT}, where="q")
    return Q(external_id__icontains=value) | Q(text__icontains=value)


def _stage(permission: ViewPermission, value: str) -> Q:
    if value == "labelled":
        return _labelled(permission)
    if value == "unlabelled":
        return ~_labelled(permission)
    if value == "disputed":
        work = permission.work().filter(batch__locked_at__isnull=True, batch__withdrawn_at__isnull=True)
        return Q(Exists(unsettled(work).filter(item=OuterRef("pk"))))
    if value == "held_out":
        return is_held_out(permission.project)
    if value == "split":
        return needs_new_choice(permission)
    work = permission.work().filter(item=OuterRef("pk"))
    if value == "waiting":
        asked = work.filter(batch__withdrawn_at__isnull=True)
        return Q(Exists(asked.filter(state__in=WorkItem.UNFINISHED)))
    if value == "stuck":
        return Q(pk__in=permission.stuck().order_by().values("item"))
    if value in (WorkItem.State.UNLABELABLE, WorkItem.State.WITHDRAWN):
        return Q(Exists(work.filter(state=value)))
    raise _unknown("stage", STAGES)


def _sent(permission: ViewPermission, value: str) -> Q:
    """Where the thresholds sent it: the position of a source, or a person."""
    _output(permission)
    people = len(permission.run_sources) + 1
    after = {PERSON: people}
    if permission.run is not None and permission.run.by_expert:
        after |= {CHECKED: people + 1, EXPERT: people + 2}
    position = after.get(value) or _source(permission, "sent", value).position
    routes = Route.objects.none() if permission.run is None else covered_routes(permission.run)
    return Q(Exists(routes.filter(item=OuterRef("pk"), position=position)))


def _given_by(permission: ViewPermission, value: str) -> Q:
    """Whose label a delivery would hold now."""
    if value in (PERSON, EXPERT):
        expert = Q(labelled_by_experts(permission.project, item="pk"))
        return by_person(permission) & (expert if value == EXPERT else ~expert)
    _output(permission)
    if value == NOBODY:
        models = [by_model(permission, run_source) for run_source in permission.run_sources]
        condition = ~by_person(permission)
        for model in models:
            condition &= ~model
        return condition
    return ~by_person(permission) & by_model(permission, _source(permission, "by", value))


def _label(permission: ViewPermission, value: str) -> Q:
    """The label that a delivery would hold now, by whoever."""
    return delivered_as(permission, _value(permission, "label", value))


def _human(permission: ViewPermission, value: str) -> Q:
    """A label that some person gave, also where it is not the one that is delivered."""
    labels = with_choice(permission.labels(), permission.project, as_key(_value(permission, "human", value)))
    return Q(Exists(labels.filter(item=OuterRef("pk"))))


def _answer(permission: ViewPermission, value: str) -> Q:
    """What a source predicted: "<position>:<label>"."""
    _output(permission)
    position, _sign, label = value.partition(":")
    run_source = _source(permission, "answer", position)
    answers = _answers(run_source).filter(item=OuterRef("pk"))
    key = as_key(_value(permission, "answer", label))
    return Q(Exists(with_choice(answers, permission.project, key)))


def _u_from(permission: ViewPermission, value: str) -> Q:
    return _scored(permission, u__gte=score_in(value, "u_from"))


def _u_to(permission: ViewPermission, value: str) -> Q:
    return _scored(permission, u__lte=score_in(value, "u_to"))


def _annotator(permission: ViewPermission, value: str) -> Q:
    if not _is_id(value):
        raise InputError(_("Choose one of the project's people."), where="annotator")
    return Q(Exists(permission.labels().filter(item=OuterRef("pk"), annotator=int(value))))


def _flag(permission: ViewPermission, value: str) -> Q:
    flags = permission.comments().filter(item=OuterRef("pk"), is_flag=True)
    if value == "open":
        return Q(Exists(flags.filter(resolved_at__isnull=True)))
    if value == "resolved":
        return Q(Exists(flags.filter(resolved_at__isnull=False)))
    raise _unknown("flag", ("open", "resolved"))


def _comment(permission: ViewPermission, value: str) -> Q:
    if value != "any":
        raise _unknown("comment", ("any",))
    written = permission.comments().filter(item=OuterRef("pk")).exclude(text="")
    return Q(Exists(written)) | Q(Exists(permission.labels().filter(item=OuterRef("pk")).exclude(comment="")))


def _commented(permission: ViewPermission) -> Q:
    written = permission.comments().exclude(text="").order_by().values("item")
    return Q(pk__in=written.union(permission.labels().exclude(comment="").order_by().values("item")))


def compares_stored_forms(permission: ViewPermission) -> bool:
    """Whether the database can tell which answers differ: not where a loss says so, as with boxes."""
    return not TASK_TYPES[permission.project.task_type].compared_by_loss


def _differ(permission: ViewPermission, value: str) -> Q:
    if not compares_stored_forms(permission):
        raise InputError(
            _(
                "Whether two answers differ is for the project's loss to say here, so the table cannot be "
                "filtered by it."
            ),
            where="differ",
        )
    if value == "people":
        return people_differ(permission)
    if value != "sources":
        raise _unknown("differ", ("people", "sources"))
    _output(permission)
    condition = Q(pk__in=[])
    # From the dearer one of each pair, which has fewer answers.
    for index, dear in enumerate(permission.run_sources):
        for cheap in permission.run_sources[:index]:
            other = _as_texts(_answers(cheap).filter(item=OuterRef("item_id"))).exclude(
                value_text=OuterRef("value_text")
            )
            answers = _as_texts(_answers(dear).filter(item=OuterRef("pk"))).filter(Exists(other))
            condition |= Q(Exists(answers))
    return condition


def _same(permission: ViewPermission, value: str) -> Q:
    """Items whose content another item has, too."""
    if value != "any":
        raise _unknown("same", ("any",))
    twins = Item.objects.filter(project=permission.project, content_hash=OuterRef("content_hash"))
    return Q(Exists(twins.exclude(pk=OuterRef("pk"))))


FILTERS: dict[str, Condition] = {
    "q": _search,
    "stage": _stage,
    "by": _given_by,
    "sent": _sent,
    "label": _label,
    "human": _human,
    "answer": _answer,
    "u_from": _u_from,
    "u_to": _u_to,
    "annotator": _annotator,
    "flag": _flag,
    "comment": _comment,
    "differ": _differ,
    "same": _same,
}

# The same as one list, for `filtered`: beside an OR the database would go through all items.
RARE: dict[str, Callable[[ViewPermission], Q]] = {"comment": _commented}


# --- What the conditions are made of ------------------------------------------------------------------------


def _labelled(permission: ViewPermission) -> Q:
    return Q(Exists(permission.labels().filter(item=OuterRef("pk"))))


def people_differ(permission: ViewPermission) -> Q:
    """Items to which people gave different labels, whether or not one of them was settled upon."""
    other = _as_texts(permission.labels().filter(item=OuterRef("item_id"), pk__gt=OuterRef("pk")))
    labels = _as_texts(permission.labels().filter(item=OuterRef("pk")))
    return Q(Exists(labels.filter(Exists(other.exclude(value_text=OuterRef("value_text"))))))


def as_key(value: Value) -> str:
    """What `with_choice` compares with: one choice, or a whole label of another kind."""
    return value if isinstance(value, str) else as_text(value)


def _value(permission: ViewPermission, where: str, text: str) -> str:
    """The key of a choice, or a label of another task type in its stored form."""
    if "\0" in text:
        raise InputError(_("No label has a NUL in it."), where=where)
    read = reader_of(permission.project)
    if read.kind.has_labels:
        if permission.project.choices.filter(key=text).exists():
            return text
        keys = permission.project.choices.order_by("position").values_list("key", flat=True)[:MOST_NAMED]
        raise InputError(
            _("There is no such label; choose one of %(names)s.") % {"names": ", ".join(keys)}, where=where
        )
    value, reason = read(text)
    if value is None:
        raise InputError(reason, where=where)
    return str(value)


def _answers(run_source: RunSource) -> QuerySet[Prediction]:
    return Prediction.objects.filter(
        source=run_source.source_id, fingerprint=run_source.fingerprint, value__isnull=False
    )


def _as_texts(rows: QuerySet[Any]) -> QuerySet[Any]:
    # Values are canonical, so that equal ones have equal texts.
    return rows.alias(value_text=Cast(F("value"), CharField()))


def _scored(permission: ViewPermission, **conditions: float) -> Q:
    _output(permission)
    items = PoolItem.objects.none() if permission.run is None else covered_items(permission.run)
    return Q(Exists(items.filter(item=OuterRef("pk"), **conditions)))


def score_in(text: str, where: str) -> float:
    """Raises InputError where the text is no number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise InputError(_("A score is a number from 0 to 1."), where=where)
    return value


def _output(permission: ViewPermission) -> None:
    if permission.run is None:
        raise HiddenError(_("Answers and scores of the models may not be looked at now."))


def _source(permission: ViewPermission, where: str, text: str) -> RunSource:
    for run_source in permission.run_sources:
        if str(run_source.position) == text:
            return run_source
    names = ", ".join(f"{position} ({name})" for position, name in names_of_sources(permission))
    if not names:
        raise InputError(_("The run has no such source."), where=where)
    raise InputError(
        _("The run has no such source; choose one of %(names)s.") % {"names": names}, where=where
    )


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _unknown(where: str, names: tuple[str, ...]) -> InputError:
    return InputError(
        _("There is no such filter; choose one of %(names)s.") % {"names": ", ".join(names)}, where=where
    )


def names_of_sources(permission: ViewPermission) -> Iterator[tuple[str, str]]:
    """Position, as it stands in filters, and name of the sources of the shown run."""
    for run_source in permission.run_sources:
        yield str(run_source.position), run_source.source.name
