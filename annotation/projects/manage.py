"""Making and changing projects and their labels."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.text import slugify
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.common.replaced_labels import replaced_labels
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling.label_queries import with_choice
from annotation.models import MAX_OVERLAP, Choice, Label, Membership, Project, User
from annotation.people.own_passwords import note_belonging, require_chosen
from annotation.ports import routing_port
from annotation.projects.choices import MAX_CHOICES, ChoiceSpec, complete
from annotation.projects.guidelines import RENDERED, prepare_guidelines
from annotation.projects.label_studio_config import read_config
from annotation.task_types import DEFAULT, TASK_TYPES

__all__ = ["ChoiceSpec", "create_project", "may_make_projects", "set_choices", "update_project"]

ON_ONE_LINE = ("name", "question", "currency")
EDITABLE = frozenset(
    {
        *("name", "question", "guidelines", "currency", "human_cost", "lease_seconds", "text_format"),
        *("overlap", "overlap_share", "consensus", "loss", "loss_params"),
    }
)
# Words that stand in a project's place in an address.
RESERVED_SLUGS = frozenset({"new"})


def create_project(
    *,
    user: User,
    name: str,
    choices: Sequence[ChoiceSpec] = (),
    task_type: str = DEFAULT,
    question: str = "",
    guidelines: str = "",
    currency: str = "USD",
    human_cost: Decimal = Decimal(1),
    lease_seconds: int = 900,
    text_format: str = Project.TextFormat.PLAIN,
    overlap: int = 1,
    overlap_share: Decimal = Decimal(1),
    consensus: str = Project.Consensus.MAJORITY,
    label_config: str = "",
    guidelines_before: str = "",
    loss: str = "",
    loss_params: Mapping[str, Any] | None = None,
) -> Project:
    """Make a project; `user` becomes its owner. `choices` are for the task types that have them.

    The slug is made from the name; it and the task type never change. `human_cost` is what one label by a
    person costs; `overlap` people are asked about an item with the probability `overlap_share`, else one is.
    `guidelines_before` are those of a project that this one is like: they may be as long as they are.
    `loss` and its parameters are what plans begin with; "" for what suits the task type.
    A Label Studio configuration, `label_config`, says task type, labels and text format in place of these.
    Raises InputError whose `where` names the field, and NotAllowedError for somebody who may make none.
    """
    if not may_make_projects(user):
        raise NotAllowedError(_("On this server administrators and staff make projects. Ask one of them."))
    require_chosen(user=user, project=None)
    if label_config := label_config.strip():
        if choices:
            raise InputError(_("Give labels or a configuration, not both."), where="label_config")
        config = read_config(label_config)
        task_type, choices, text_format = config.task_type, config.choices, config.text_format
    specs = _specs(task_type, choices)
    project = Project(
        name=name.strip(),
        task_type=task_type,
        question=question.strip(),
        guidelines=guidelines,
        currency=currency.strip(),
        human_cost=human_cost,
        lease_seconds=lease_seconds,
        text_format=text_format,
        overlap=overlap,
        overlap_share=overlap_share,
        consensus=consensus,
        label_config=label_config,
        loss=loss,
        loss_params=dict(loss_params or {}),
        created_by=user,
    )
    for field in ON_ONE_LINE:
        checked_line(getattr(project, field), where=field)
    _validate(project)
    prepare_guidelines(project, before=guidelines_before)
    base = slugify(project.name)[:70].strip("-") or "project"
    number = 1
    while True:
        project.slug = base if number == 1 and base not in RESERVED_SLUGS else f"{base}-{number}"
        number += 1
        if Project.objects.filter(slug=project.slug).exists():
            continue
        try:
            with transaction.atomic():
                project.save(force_insert=True)
                Membership.objects.create(project=project, user=user, role=Membership.Role.OWNER)
                note_belonging(user=user, project=project)
                _insert(project, list(enumerate(specs)))
                routing_port().check_loss(project=project)
                audit.record(
                    project=project,
                    actor=user,
                    action="project.created",
                    data={
                        "name": project.name,
                        "task_type": project.task_type,
                        "choices": [spec.key for spec in specs],
                    },
                )
        except IntegrityError:
            # Somebody took the same slug at the same moment; any other reason shows again and is raised.
            if not Project.objects.filter(slug=project.slug).exists():
                raise
            project.pk = None
            continue
        return project


def may_make_projects(user: User) -> bool:
    """HYPAC_PROJECT_MAKERS says whether everybody may."""
    return settings.HYPAC_PROJECT_MAKERS == "everybody" or user.is_staff or user.is_superuser


def update_project(*, project: Project, user: User, **fields: Any) -> Project:
    """Change what is in EDITABLE. How many people are asked holds for runs that start later.

    Raises InputError whose `where` names the field, and ConflictError for words that somebody builds
    on (`RoutingPort.wording_objection`); `project` is then unchanged.
    """
    if unknown := sorted(set(fields) - EDITABLE):
        raise InputError(_("This cannot be changed."), where=unknown[0])
    before = {name: getattr(project, name) for name in fields}
    try:
        for name, value in fields.items():
            setattr(project, name, value.strip() if name in ON_ONE_LINE else value)
            if name in ON_ONE_LINE and getattr(project, name) != before[name]:
                checked_line(value, where=name)
        _validate(project)
        if project.guidelines != before.get("guidelines", project.guidelines):
            prepare_guidelines(project, before=before["guidelines"])
            stored = Project.objects.get(pk=project.pk)
            if objection := routing_port().wording_objection(project=stored, guidelines=project.guidelines):
                raise ConflictError(objection, where="guidelines", code="wording_in_use")
        if project.question != before.get("question", project.question) and (
            objection := routing_port().wording_objection(project=project, question=project.question)
        ):
            raise ConflictError(objection, where="question", code="wording_in_use")
        if project.text_format != before.get("text_format", project.text_format) and (
            objection := routing_port().wording_objection(project=project, text_format=project.text_format)
        ):
            raise ConflictError(objection, where="text_format", code="wording_in_use")
        if {"loss", "loss_params"} & set(fields):
            routing_port().check_loss(project=project)
    except (InputError, ConflictError):
        for name, value in before.items():
            setattr(project, name, value)
        raise
    changed = {
        name: [str(before[name]), str(getattr(project, name))]
        for name in fields
        if before[name] != getattr(project, name)
    }
    if changed:
        with transaction.atomic():
            project.save(update_fields=[*changed, *(RENDERED if "guidelines" in changed else ())])
            audit.record(project=project, actor=user, action="project.changed", data=changed)
    return project


def set_choices(*, project: Project, user: User, choices: Sequence[ChoiceSpec]) -> list[Choice]:
    """Make these the project's labels, in this order. A label is recognised by its key, which never changes.

    Colours and shortcut keys can always be changed. Raises ConflictError where names or keys would change
    while somebody builds on them (`RoutingPort.schema_objection`), or their order
    (`RoutingPort.wording_objection`), and where a removed label has been given.
    """
    known = set(project.choices.values_list("name", flat=True))
    specs = _specs(project.task_type, choices, known)
    wanted = {spec.key: spec for spec in specs}
    with transaction.atomic():
        # Two people who change the labels at once do so one after the other.
        locked_project(project.pk)
        present = {choice.key: choice for choice in project.choices.all()}
        removed = sorted(set(present) - set(wanted))
        renamed = {
            key: [choice.name, wanted[key].name]
            for key, choice in present.items()
            if key in wanted and choice.name != wanted[key].name
        }
        added = [spec.key for spec in specs if spec.key not in present]
        if (removed or renamed or added) and (objection := routing_port().schema_objection(project=project)):
            raise ConflictError(objection, where="choices", code="labels_in_use")
        named = [(spec.key, spec.name) for spec in specs]
        if named != [(choice.key, choice.name) for choice in present.values()] and (
            objection := routing_port().wording_objection(project=project, choices=named)
        ):
            raise ConflictError(objection, where="choices", code="wording_in_use")
        for key in removed:
            if with_choice(Label.objects.filter(item__project=project), project, key).exists():
                raise ConflictError(
                    _(
                        "The label %(name)r has been given to items already and cannot be removed. "
                        "It can be renamed."
                    )
                    % {"name": present[key].name},
                    where="choices",
                    code="label_given",
                )
        _refuse_replaced(project, {key: present[key].name for key in removed}, added)
        project.choices.filter(key__in=removed).delete()
        # Out of the way first: places and shortcut keys are unique at every moment.
        project.choices.update(position=F("position") + 2 * MAX_CHOICES, hotkey="")
        for position, spec in enumerate(specs):
            if spec.key in present:
                project.choices.filter(key=spec.key).update(
                    name=spec.name, hotkey=spec.hotkey, color=spec.color, position=position
                )
        _insert(project, [(place, spec) for place, spec in enumerate(specs) if spec.key in added])
        audit.record(
            project=project,
            actor=user,
            action="project.choices_changed",
            data={"added": added, "removed": removed, "renamed": renamed},
        )
    return list(project.choices.all())


def _refuse_replaced(project: Project, removed: Mapping[str, str], added: Sequence[str]) -> None:
    """Labels that were merged or split keep their keys, as what was stored has them, and need the ones that
    they went into.
    """
    replaced = replaced_labels(project)
    for key in added:
        if key in replaced.into:
            raise ConflictError(
                _(
                    "There was a label with the key %(key)r, which was merged or split, and what was stored "
                    "keeps it. Give the new label another key."
                )
                % {"key": key},
                where="choices",
                code="label_key_spent",
            )
    for key, name in removed.items():
        if key in replaced.merged.values():
            raise ConflictError(
                _("Another label was merged into %(name)r, which cannot be removed. It can be renamed.")
                % {"name": name},
                where="choices",
                code="label_merged_into",
            )


def _specs(task_type: str, choices: Sequence[ChoiceSpec], known: Collection[str] = ()) -> list[ChoiceSpec]:
    if task_type not in TASK_TYPES:
        known = ", ".join(TASK_TYPES)
        raise InputError(
            _("There is no task type %(task_type)r; choose one of %(known)s.")
            % {"task_type": task_type[:40], "known": known},
            where="task_type",
        )
    if (kind := TASK_TYPES[task_type]).has_labels:
        return complete(choices, to_choose=kind.has_choices, known=known)
    if choices:
        raise InputError(
            _("Labels are for projects in which people choose; leave them out."), where="choices"
        )
    return []


def _insert(project: Project, places: Sequence[tuple[int, ChoiceSpec]]) -> None:
    Choice.objects.bulk_create(
        Choice(
            project=project,
            key=spec.key,
            name=spec.name,
            hotkey=spec.hotkey,
            color=spec.color,
            position=place,
        )
        for place, spec in places
    )


def _validate(project: Project) -> None:
    _validate_overlap(project)
    try:
        project.full_clean(exclude=["slug", "created_by"], validate_unique=False)
    except ValidationError as error:
        if hasattr(error, "error_dict"):
            field, messages = next(iter(error.message_dict.items()))
            # The database's own rules name no field.
            if field == "__all__":
                field = "lease_seconds" if project.lease_seconds < 30 else "human_cost"
                messages = [
                    _("An item stays with a person for at least 30 seconds.")
                    if field == "lease_seconds"
                    else _("A label cannot cost less than nothing.")
                ]
            raise InputError(" ".join(messages), where=field) from None
        raise


def _validate_overlap(project: Project) -> None:
    if not 1 <= project.overlap <= MAX_OVERLAP:
        raise InputError(
            _("Between 1 and %(most)s people can label an item.") % {"most": MAX_OVERLAP}, where="overlap"
        )
    if not 0 < project.overlap_share <= 1:
        raise InputError(
            _("Write a share above 0 and at most 1. Where one person is enough, set their number to 1."),
            where="overlap_share",
        )
    by_model = project.consensus == Project.Consensus.DAWID_SKENE
    if by_model and not TASK_TYPES[project.task_type].one_choice:
        raise InputError(_("Dawid-Skene is for single choices only."), where="consensus")
