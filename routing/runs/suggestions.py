"""Suggestions: after the routing, whoever labels an item that no model keeps may see what a model answered.

Only where the plan says so, and only where nothing rests on what people would have answered without: people
label the calibration set, audits, gold items and whatever is asked of several people as if there were none.
"""

import json

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.errors import ConflictError, InputError
from annotation.models import Project, ShownSuggestion, WorkItem
from annotation.ports import Suggestion
from routing.common.states import ROUTED, State
from routing.models import PoolItem, Run
from routing.runs.plan_fields import PlanFields
from routing.runs.usable_answers import usable_values
from routing.visibility import output_is_open


def refuse_suggestions(project: Project, fields: PlanFields) -> None:
    """Raises InputError, at "suggestions", where the plan asks for them and something rests on labels that
    are given without.
    """
    if fields.suggestions and (words := _against(project, fields)):
        raise InputError(words, where="suggestions", code="suggestions_refused")


def _against(project: Project, fields: PlanFields) -> str:
    if fields.reference == Run.Reference.SETTLED:
        return _(
            "Two people and a third are the reference here, blind: they have to label the routed items as "
            "they labelled the calibration set. Leave suggestions out, or choose one person's label as the "
            "reference."
        )
    if fields.reference == Run.Reference.EXPERT:
        return _(
            "The promise of a run with an expert holds if people label the routed items as they labelled the "
            "calibration set. Leave suggestions out, or choose one person's label as the reference."
        )
    if project.overlap > 1:
        return _(
            "This project asks several people about an item, so that their answers can be compared, and a "
            "suggestion would bring them together. Leave suggestions out, or have one person label an item."
        )
    if fields.target == Run.Target.POPULATION and fields.later_audit_share != 0:
        return _(
            "People audit later items without a suggestion, so that they could tell these from others. Leave "
            "suggestions out, or write 0 as the share of later items that people label, too."
        )
    return ""


def warnings_of_suggestions(project: Project, *, wanted: bool) -> tuple[str, ...]:
    """What somebody who plans them should know, in sentences."""
    if not wanted or not project.gold_share:
        return ()
    return (
        _(
            "Gold items have no suggestion, so that people can tell them from routed items: what they get "
            "right of these says less than in the calibration."
        ),
    )


def refuse_routing_beside_suggestions(run: Run) -> None:
    """Raises ConflictError where people would label items of `run` as if there were no suggestions and are
    shown them in another run, or have been. Two runs may wait over the same items, each planned before the
    other was routed.
    """
    items = PoolItem.objects.filter(run=run).values("item")
    beside = run.project.runs.exclude(pk=run.pk).filter(pool_items__item__in=items)
    if run.suggestions:
        other = beside.filter(Q(state=State.ANALYSED) | Q(state=State.LABELLING)).first()
    else:
        shown = ShownSuggestion.objects.filter(work_item__item__in=items).values("work_item__batch")
        other = beside.filter(Q(state=State.LABELLING, suggestions=True) | Q(routed_batch__in=shown)).first()
    if other is None:
        return
    why = _(
        "Run %(run)s and run %(other)s have items in common, and one of them shows people what a model "
        "answered, so that they would not label them blind in the other. Nothing was routed."
    ) % {"run": run.number, "other": other.number}
    what = (
        _("Finish or cancel run %(other)s first.")
        if run.suggestions
        else _("Cancel run %(run)s and plan another one: it leaves out what people were shown.")
    )
    words = {"run": run.number, "other": other.number}
    raise ConflictError(f"{why} {what % words}", code="suggestions_beside")


def suggestion_of(work_item: WorkItem) -> Suggestion | None:
    """The answer of the last model that a routed item went through and that could be used, and the model's
    name; None where there is none, and while model output may not be shown to anybody.
    """
    runs = Run.objects.filter(routed_batch=work_item.batch_id, suggestions=True, state__in=ROUTED)
    run = runs.select_related("project").first()
    if run is None or not output_is_open(run.project):
        return None
    run_sources = run.run_sources.select_related("source", "run__project").order_by("-position")
    for run_source in run_sources:
        answers = dict(usable_values(run_source, [work_item.item_id]))
        if (answer := answers.get(work_item.item_id)) is not None:
            return Suggestion(json.loads(answer), run_source.source.name)
    return None
