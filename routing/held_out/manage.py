"""Hold items out of all runs, to practise on, to check people with or to compare prompts on, and set their
known answers.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.locks import locked_against_jobs, locked_project
from annotation.errors import ConflictError, InputError
from annotation.jobs.closed_projects import refuse_closed
from annotation.labelling.validation import validate_value
from annotation.models import HeldOutItem, Item, Project
from annotation.permissions import Access
from routing.core import sampling
from routing.runs.busy import refuse_while_busy
from routing.runs.untouched_items import drawn_ids, named_ids, untouched_items

MOST = 500
MAX_EXPLANATION = 2000
LARGEST_SHARE = 0.5
LEAST_LAST, MOST_LAST = 5, 200


def hold_out(
    *,
    access: Access,
    purpose: str,
    size: int | None = None,
    names: Sequence[str] = (),
    entropy: int | None = None,
) -> list[HeldOutItem]:
    """Keep `size` items drawn at random, or the items with these external ids, out of every later run.

    Raises InputError whose `where` is "purpose", "size" or "names", and ConflictError while a run is
    under way.
    """
    project = access.project
    if purpose not in HeldOutItem.Purpose.values:
        raise InputError(
            _("Choose one of %(names)s.") % {"names": ", ".join(HeldOutItem.Purpose.values)}, where="purpose"
        )
    if names and purpose == HeldOutItem.Purpose.PROMPTS:
        raise InputError(
            _("Items to compare prompts on are drawn at random: on chosen ones no error can be told."),
            where="names",
        )
    seed = sampling.new_entropy() if entropy is None else entropy
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_closed(project.pk)
        refuse_while_busy(project)
        wanted = list(dict.fromkeys(names))[: MOST + 1]
        chosen = named_ids(project, wanted) if names else _drawn(project, size, seed)
        if project.held_out.count() + len(chosen) > MOST:
            raise InputError(
                _("At most %(most)s items of a project can be held out.") % {"most": MOST},
                where="names" if names else "size",
            )
        made = HeldOutItem.objects.bulk_create(
            HeldOutItem(
                project=project,
                item_id=pk,
                purpose=purpose,
                at_random=not names,
                created_by=access.user,
            )
            for pk in chosen
        )
        audit.record(
            project=project,
            actor=access.user,
            action="held_out.added",
            target=f"project:{project.slug}",
            data={"purpose": purpose, "items": len(made), "by_name": bool(names)},
        )
    return made


def set_answer(*, access: Access, held: HeldOutItem, answer: Any, explanation: str = "") -> HeldOutItem:
    """Say what the label of a held-out item is, and why: from then on it is used. Answers to a gold item that
    were given before are compared with the new one.
    """
    explanation = explanation.strip()
    if len(explanation) > MAX_EXPLANATION or "\0" in explanation:
        raise InputError(
            _("An explanation has at most %(most)s characters.") % {"most": f"{MAX_EXPLANATION:,}"},
            where="explanation",
        )
    value = validate_value(access.project, answer, item=held.item_id)
    if (held.answer, held.explanation) == (value, explanation):
        return held
    with transaction.atomic():
        held.answer, held.explanation = value, explanation
        held.save(update_fields=["answer", "explanation"])
        audit.record(
            project=access.project,
            actor=access.user,
            action="held_out.answered",
            target=f"item:{held.item.external_id}",
            data={"purpose": held.purpose},
        )
    return held


def release(*, access: Access, held: HeldOutItem) -> None:
    """Give an item back to later runs, as if it had never been held out.

    Raises ConflictError for one that somebody has been given, for one that was drawn at random (which of
    those go back would be somebody's choice), and for one without which something was drawn since: named
    items that come back alone are no random sample.
    """
    if held.at_random:
        raise ConflictError(
            _(
                "This item was drawn at random and stays held out: if some of those went back by choice, "
                "what runs cover would be no random sample any more."
            ),
            code="held_out_by_chance",
        )
    with transaction.atomic():
        # A run that starts holds the project.
        locked_project(access.project.pk)
        Item.objects.select_for_update(no_key=True).get(pk=held.item_id)
        if _drawn_since(access.project, held):
            raise ConflictError(
                _(
                    "A run, a guideline round or other held-out items were drawn without this item: it stays "
                    "held out, as what comes back now would be no random sample."
                ),
                code="held_out_since_a_draw",
            )
        given = held.item.work_items.filter(batch__for_gold=True).exists()
        if given or held.answers.exists():
            raise ConflictError(
                _("Somebody has been given this item already: it stays held out, as they know it."),
                code="held_out_known",
            )
        name = held.item.external_id
        held.delete()
        audit.record(
            project=access.project,
            actor=access.user,
            action="held_out.released",
            target=f"item:{name}",
            data={},
        )


def _drawn_since(project: Project, held: HeldOutItem) -> bool:
    since = {"created_at__gte": held.created_at}
    return (
        project.runs.filter(**since).exists()
        or project.rounds.filter(by_name=False, **since).exists()
        or project.held_out.filter(at_random=True, **since).exists()
    )


def change_settings(
    *,
    access: Access,
    practice_first: bool | None = None,
    gold_share: float | None = None,
    gold_bar: float | None = None,
    gold_last: int | None = None,
) -> Project:
    """Whether annotators practise first, and how they are checked; None leaves a setting as it is.

    Raises InputError where a number is out of its range, or nothing can be practised or checked.
    """
    project = access.project
    wanted = {
        name: value
        for name, value in {
            "practice_first": practice_first,
            "gold_share": gold_share,
            "gold_bar": gold_bar,
            "gold_last": gold_last,
        }.items()
        if value is not None
    }
    if gold_share is not None and not 0 <= gold_share <= LARGEST_SHARE:
        raise InputError(_("The share of gold items is 0 to 50 percent."), where="gold_share")
    if gold_bar is not None and not 0 <= gold_bar <= 1:
        raise InputError(_("The bar is 0 to 100 percent."), where="gold_bar")
    if gold_last is not None and not LEAST_LAST <= gold_last <= MOST_LAST:
        raise InputError(
            _("Judge by %(least)s to %(most)s answers.") % {"least": LEAST_LAST, "most": MOST_LAST},
            where="gold_last",
        )
    ready = project.held_out.filter(answer__isnull=False)
    if practice_first and not ready.filter(purpose=HeldOutItem.Purpose.PRACTICE).exists():
        raise InputError(_("No practice item has a known answer yet."), where="practice_first")
    last = project.gold_last if gold_last is None else gold_last
    if gold_share and (there := ready.filter(purpose=HeldOutItem.Purpose.GOLD).count()) < last:
        raise InputError(
            _("%(there)s gold items have a known answer, and %(last)s answers are looked at: set more.")
            % {"there": there, "last": last},
            where="gold_share",
        )
    with transaction.atomic():
        for name, value in wanted.items():
            setattr(project, name, value)
        project.save(update_fields=list(wanted))
        audit.record(
            project=project,
            actor=access.user,
            action="held_out.settings",
            target=f"project:{project.slug}",
            data=wanted,
        )
    return project


def _drawn(project: Project, size: int | None, entropy: int) -> list[int]:
    ids = list(untouched_items(project).values_list("pk", flat=True))
    if not size or not 1 <= size <= min(MOST, len(ids)):
        raise InputError(
            _("%(count)s items can be held out: those without a label that no run covers or drew.")
            % {"count": f"{len(ids):,}"},
            where="size",
        )
    return drawn_ids(ids, size=size, entropy=entropy)
