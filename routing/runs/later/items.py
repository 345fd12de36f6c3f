"""Which later items a run would take in, and what stands against it."""

import json

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from annotation.errors import Refusal, UnderWayError
from annotation.imports.columns import IMPORT
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Item
from routing.common.states import ROUTED, UNDER_WAY
from routing.models import PoolItem, Run
from routing.runs.measurements import KIND as MEASURE
from routing.runs.pool import pool_of


def new_items_of(run: Run) -> QuerySet[Item]:
    """Items that came after the pool of the run was frozen, that are in no run's pool, and of which a new run
    of this target could draw: without a label, not measured, and of an import that brought no labels.
    """
    in_a_pool = Exists(PoolItem.objects.filter(item=OuterRef("pk")))
    items = pool_of(run.project, Run.Target.POPULATION)
    # What came later stands behind the pool: by an index, where the project is large and nothing is new.
    last = run.pool_items.filter(position=run.pool_size - 1).values("item__position")
    return items.filter(~in_a_pool, position__gt=Subquery(last), created_at__gt=run.created_at)


def objection_to_later(run: Run) -> Refusal:
    """Why the run can take in no later items, whatever there is now, in a sentence; "" where it can."""
    number = {"run": run.number}
    if run.target != Run.Target.POPULATION:
        return Refusal(
            _(
                "Run %(run)s promises something about its own items alone. Items that came later are "
                "covered by a run whose target is “population”."
            )
            % number,
            "covers_own_items",
        )
    if run.state not in ROUTED:
        return Refusal(
            _("Run %(run)s takes in later items once it is routed, and no more once it is cancelled.")
            % number,
            "cannot_take_in_now",
        )
    if run.invalid_reasons:
        return Refusal(
            _(
                "Run %(run)s is no longer valid, so nothing is taken in by its thresholds: %(reasons)s Start "
                "a new run."
            )
            % {**number, "reasons": " ".join(run.broken_by)},
            "certificate_broken",
        )
    if not run.certificate.certified:
        return Refusal(
            _("Run %(run)s certified nothing by which later items could be routed.") % number,
            "nothing_certified",
        )
    return Refusal()


def objection_now(run: Run) -> Refusal:
    """The same of this moment: what has to be waited for, or who is missing."""
    if words := objection_to_later(run):
        return words
    project = run.project
    if other := project.runs.filter(state__in=UNDER_WAY).exclude(pk=run.pk).first():
        return Refusal(
            _(
                "Run %(other)s is under way (%(state)s) with the same models and people. Finish or "
                "cancel it first."
            )
            % {"other": other.number, "state": other.get_state_display().lower()},
            "other_run_under_way",
        )
    if project.jobs.filter(unique_key=IMPORT, state__in=jobs.UNFINISHED).exists():
        return Refusal(
            _("An import is under way. Wait until it has finished, so that all of it is taken in."),
            "import_under_way",
        )
    if project.jobs.filter(kind=MEASURE, state__in=jobs.UNFINISHED).exists():
        measured = UnderWayError(_(jobs.kind(MEASURE).title))
        return Refusal(measured.message, measured.code)
    if _choices_changed(run):
        return Refusal(
            _(
                "The labels to choose from, or their order, are not those that run %(run)s was certified "
                "with. Put them back as they were, or start a new run."
            )
            % {"run": run.number},
            "labels_changed",
        )
    if run.later_audit_share and not queue.somebody_may_label_blind(project):
        return Refusal(
            _(
                "A share of the later items is labelled blind by people, to see whether models get worse, "
                "and nobody in this project may do that: everybody who labels can see what models said, or "
                "could. Invite an annotator first."
            ),
            "nobody_labels_blind",
        )
    return Refusal()


def _choices_changed(run: Run) -> bool:
    """Of what people were asked, the keys of the choices alone are kept: with the certificate."""
    keys = json.loads(run.certificate.document)["provenance"].get("choices")
    now = run.project.choices.order_by("position").values_list("key", flat=True)
    return keys is not None and keys != list(now)
