"""Merging a label into another one, and splitting one into several.

No label, answer or certificate is written anew: the change is stored beside them, once for each key, and read
with them (annotation.common.replaced_labels). Of a label that was split people choose anew: as items of a run
without any model, or one by one in a list (`store_new_choices`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit, events
from annotation.common.locks import locked_project
from annotation.common.replaced_labels import choice_keys, forget_replaced_labels, replaced_labels
from annotation.common.value_reader import Value
from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.labelling.labels_of_record import record_values
from annotation.models import Choice, Item, Label, Project, ReplacedChoice, User, WorkItem
from annotation.permissions import Access
from annotation.ports import routing_port
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import set_choices
from annotation.task_types import TASK_TYPES
from routing.items.filters import filtered
from routing.label_set.effects import Effects, effects_of
from routing.labels.all_items import rows_of
from routing.labels.columns import DeliveryContext
from routing.models import FinalAudit, Run
from routing.runs.certify import mark_invalid
from routing.visibility import view_permission

MOST_PARTS = 20
MOST_AT_ONCE = 200
PRIORITY = 10

REPLACED = failures.register(
    "label_replaced",
    gettext_noop(
        "The label %(name)s was merged or split after the labels had been locked, and the run counts how far "
        "labels are apart."
    ),
)


@dataclass(frozen=True)
class Replacement:
    """What is asked for: the label, those in its place (one: merged; several: split), and what it touches."""

    choice: Choice
    into: Sequence[ChoiceSpec]
    effects: Effects

    @property
    def splits(self) -> bool:
        return len(self.into) > 1


def preview_replacement(*, project: Project, key: str, into: Sequence[str]) -> Replacement:
    """What it would mean; nothing is stored. `into` are keys or names of labels: of one that there is, or of
    several, of which each that there is not is added.

    Raises InputError whose `where` is "key" or "into", and ConflictError where a run is under way or rests on
    the labels as they are.
    """
    choice, specs = _checked(project, key, into)
    _refuse_in_use(project)
    return Replacement(choice, specs, effects_of(project, choice.key))


def replace_label(*, access: Access, key: str, into: Sequence[str]) -> ReplacedChoice:
    """Merge or split a label; raises as `preview_replacement` does. Certificates that would promise too much
    are marked.
    """
    project = access.project
    with transaction.atomic():
        locked_project(project.pk)
        found = preview_replacement(project=project, key=key, into=into)
        choice = found.choice
        keys = [spec.key for spec in found.into]
        present = [spec_of(one) for one in project.choices.all() if one.key != choice.key]
        added = [spec for spec in found.into if spec.key not in {one.key for one in present}]
        place = choice.position
        # First stored, as a label that is merged may have been given and is removed nevertheless.
        replaced = ReplacedChoice.objects.create(
            project=project, key=choice.key, name=choice.name, into=keys, created_by=access.user
        )
        choice.delete()
        forget_replaced_labels(project)
        set_choices(project=project, user=access.user, choices=[*present[:place], *added, *present[place:]])
        for run in project.runs.filter(number__in=found.effects.invalid):
            mark_invalid(run=run, why=REPLACED, params={"name": choice.name}, actor=access.user)
        audit.record(
            project=project,
            actor=access.user,
            action="project.label_split" if found.splits else "project.label_merged",
            data={
                "label": choice.name,
                "key": choice.key,
                "into": [spec.name for spec in found.into],
                "labels": found.effects.labels,
                "predictions": found.effects.predictions,
            },
        )
    return replaced


def spec_of(choice: Choice) -> ChoiceSpec:
    return ChoiceSpec(choice.name, choice.key, choice.hotkey, choice.color)


@dataclass(frozen=True)
class ItemToChoose:
    """An item whose label was split: its label, and the keys of which one is chosen in its place."""

    item: Item
    label: Value
    options: Sequence[str]


def to_choose(access: Access) -> QuerySet[Item]:
    """The items of which people have to choose anew, in the order of import."""
    return filtered(view_permission(access.project, access), {"stage": "split"}).order_by("position")


def with_options(access: Access, items: Sequence[Item]) -> list[ItemToChoose]:
    """Of items of `to_choose`, what there is to choose."""
    project, permission = access.project, view_permission(access.project, access)
    labels: dict[int, Value] = {}
    if permission.run is not None and permission.delivers:
        rows = rows_of(DeliveryContext.of(permission.run), items)
        labels = {item.pk: row.label for item, row in zip(items, rows, strict=True) if row.label is not None}
    records = record_values(project, [item.pk for item in items], hidden=permission.hidden)
    labels |= {pk: record.value for pk, record in records.items()}
    replaced = replaced_labels(project)
    return [
        ItemToChoose(item, labels[item.pk], [part for key in split for part in replaced.choices_for(key)])
        for item in items
        if (split := choice_keys(labels.get(item.pk)) & replaced.split)
    ]


def store_new_choices(*, access: Access, chosen: Mapping[int, str]) -> int:
    """Store for items, by their ids, which of the labels in a split one's place each has; returns how many.

    They are labels of whoever chooses, in a batch of their own, whose work is done. Raises InputError where
    an item is none that has to be chosen anew, or a label none of those in its place, ConflictError while a
    run is under way.
    """
    project = access.project
    if not 1 <= len(chosen) <= MOST_AT_ONCE:
        raise InputError(
            _("Choose for at least one item, and for at most %(most)s at a time.") % {"most": MOST_AT_ONCE},
            where="labels",
        )
    with transaction.atomic():
        locked_project(project.pk)
        _refuse_in_use(project)
        waiting = list(to_choose(access).filter(pk__in=list(chosen)))
        if len(waiting) != len(chosen):
            raise InputError(
                _("Somebody has chosen for one of these already, or its label was not split. Look again."),
                where="labels",
            )
        values = {
            one.item.pk: _value(project, one, chosen[one.item.pk]) for one in with_options(access, waiting)
        }
        _store(project, access.user, values)
        audit.record(
            project=project, actor=access.user, action="label.chosen_anew", data={"items": len(values)}
        )
    return len(values)


def _value(project: Project, waiting: ItemToChoose, key: str) -> Value:
    """Of several labels the others stay."""
    if key not in waiting.options:
        raise InputError(
            _("Choose one of these labels: %(labels)s.") % {"labels": ", ".join(waiting.options)},
            where="labels",
        )
    if not TASK_TYPES[project.task_type].several:
        return key
    replaced = replaced_labels(project)
    return sorted(
        {replaced.merged.get(one, one) for one in choice_keys(waiting.label) - replaced.split} | {key}
    )


def _store(project: Project, user: User, values: Mapping[int, object]) -> None:
    batch = queue.create_batch(
        project=project, item_ids=list(values), blind=False, priority=PRIORITY, entropy=project.pk
    )
    now = timezone.now()
    batch.work_items.update(state=WorkItem.State.DONE, finished_at=now)
    for work in batch.work_items.select_related("item"):
        label = Label.objects.create(
            item=work.item,
            work_item=work,
            annotator=user,
            value=values[work.item_id],
            idempotency_key=f"chosen-{work.pk}",
        )
        routing_port().label_stored(label=label, replaced=None)
        events.label_stored(label, project, batch.pk)


def _checked(project: Project, key: str, into: Sequence[str]) -> tuple[Choice, list[ChoiceSpec]]:
    choice = project.choices.filter(key=key).first()
    if choice is None:
        raise InputError(_("There is no such label. Choose one of the project's."), where="key")
    others = {one.key: one for one in project.choices.all() if one.key != key}
    by_name = {one.name.casefold(): one for one in others.values()}
    names = list(dict.fromkeys(name.strip() for name in into if name.strip()))
    if not names:
        raise InputError(_("Say which label it becomes."), where="into")
    if len(names) > MOST_PARTS:
        raise InputError(
            _("A label is split into at most %(most)s others.") % {"most": MOST_PARTS}, where="into"
        )
    specs = []
    for name in names:
        if name in (choice.key, choice.name) or name.casefold() == choice.name.casefold():
            raise InputError(
                _("“%(name)s” is the label itself. Name others in its place.") % {"name": name[:100]},
                where="into",
            )
        present = others.get(name) or by_name.get(name.casefold())
        specs.append(spec_of(present) if present else ChoiceSpec(name, name))
    if len(specs) == 1 and specs[0].key not in others:
        raise InputError(
            _(
                "There is no label “%(name)s” to merge into. A label is renamed in the settings; to split "
                "one, name at least two."
            )
            % {"name": names[0][:100]},
            where="into",
        )
    return choice, specs


def _refuse_in_use(project: Project) -> None:
    if objection := routing_port().schema_objection(project=project):
        raise ConflictError(objection, where="key", code="labels_in_use")
    open_audit = FinalAudit.objects.filter(run__project=project, certificate__isnull=True).first()
    if open_audit is not None:
        run = Run.objects.get(pk=open_audit.run_id)
        raise ConflictError(
            _("The final audit of run %(run)s compares labels as they are. Analyse it first.")
            % {"run": run.number},
            where="key",
            code="final_audit_open",
        )
