"""What people still have to label in a run, for a program elsewhere: no prediction, no score.

The calibration set is given out to whoever asks for it by name. That nobody saw a model's answer before
theirs is what its certificate rests on, and this server cannot see to that elsewhere: the answer says what
must not be shown there, and the certificate how many of its labels came so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.imports.columns import shown_in_order
from annotation.imports.formats.label_studio_names import META, plain_names
from annotation.items.image_links import signer
from annotation.models import Item, User, WorkBatch, WorkItem
from annotation.ports import routing_port
from annotation.projects.label_studio_config import columns_of_tasks
from routing.models import Run

PAGE = 500
HYPAC, LABEL_STUDIO = "hypac", "label-studio"
FORMATS = (HYPAC, LABEL_STUDIO)
ROUTED, CALIBRATION = "routed", "calibration"
PARTS = (ROUTED, CALIBRATION)


@dataclass(frozen=True)
class Waiting:
    """How many items of a part wait, and on what their labels rest, in sentences. `note` says why none will,
    where people have nothing to do in this run any more.
    """

    part: str
    waiting: int
    blind: bool
    conditions: Sequence[str]
    note: str = ""


def waiting(*, run: Run, part: str) -> Waiting:
    """Raises ConflictError where nothing of that part may be labelled elsewhere now."""
    batches = batches_for_elsewhere(run, part)
    if part == ROUTED and run.state == Run.State.COMPLETE:
        return Waiting(part, 0, False, [], _why_none(run, batches))
    conditions = [
        _("Nobody who labels may see what a model answered, or how sure it was, about any of these items."),
        _("Nobody who labels an item may see what somebody else answered about it."),
    ]
    blind = any(batch.blind for batch in batches)
    if blind:
        conditions.append(_("Nobody may choose which of these items are labelled: every one is asked about."))
    if part == CALIBRATION:
        conditions.append(
            _("The certificate says how many labels of the calibration set came from another program.")
        )
        if run.measured_elsewhere:
            conditions.append(
                _(
                    "Losses come in a second step: once all of these labels are there and locked, "
                    "losses.ndjson gives them out with models' answers, to the program that measures."
                )
            )
    elif blind:
        conditions.append(
            _("Some of these items audit what models label. Which ones is told to nobody, here or there.")
        )
    return Waiting(part, len(waiting_work(batches)), part == CALIBRATION, conditions)


def _why_none(run: Run, batches: Sequence[WorkBatch]) -> str:
    if WorkItem.objects.filter(batch__in=batches).exists():
        return _("People have labelled all that run %(run)s left for them.") % {"run": run.number}
    return _("Routing left nothing for people in run %(run)s.") % {"run": run.number}


def batches_for_elsewhere(run: Run, part: str) -> list[WorkBatch]:
    """Of the routed items also those that audit items taken in later: as in the queue here, nobody is to tell
    them apart. None where routing left nothing for people.

    Raises ConflictError, in words, where nothing of that part may be labelled elsewhere now.
    """
    if part == CALIBRATION:
        return [_calibration(run)]
    asked = (run.routed_batch, run.later_audit_batch)
    batches = [batch for batch in asked if batch is not None and batch.withdrawn_at is None]
    if run.state not in (Run.State.LABELLING, Run.State.COMPLETE):
        raise ConflictError(_why_not_routed(run), code="no_routed_items")
    hidden = routing_port().hidden_batches(project=run.project)
    here_alone = any(batch.rostered or batch.pk in hidden for batch in batches)
    if here_alone or run.reference != Run.Reference.PERSON:
        raise ConflictError(
            _(
                "The items of run %(run)s are labelled blind or by a roster, which only this server can see "
                "to."
            )
            % {"run": run.number},
            code="labelled_here_alone",
        )
    return batches


def _why_not_routed(run: Run) -> str:
    if run.state == Run.State.CANCELLED:
        return _("Run %(run)s was cancelled: it asks nobody about its items any more.") % {"run": run.number}
    words = _("Run %(run)s is not routed yet, and sends nothing to people before: %(state)s.") % {
        "run": run.number,
        "state": run.get_state_display().lower(),
    }
    if run.state != Run.State.CALIBRATING:
        return words
    return _(
        "%(words)s Its calibration set is asked for by part=calibration, knowing what must not be shown there."
    ) % {"words": words}


def _calibration(run: Run) -> WorkBatch:
    batch = run.calibration_batch
    if batch is None or run.state != Run.State.CALIBRATING:
        raise ConflictError(
            _("The calibration set of run %(run)s is not being labelled now: %(state)s.")
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="no_calibration_items",
        )
    if batch.rostered or run.reference != Run.Reference.PERSON:
        raise ConflictError(
            _(
                "Run %(run)s promises something about what several people or an expert would say, each asked "
                "by its plan alone. Only this server can see to that: its calibration set is labelled here."
            )
            % {"run": run.number},
            code="labelled_here_alone",
        )
    return batch


def waiting_work(batches: Sequence[WorkBatch]) -> list[int]:
    """Ids of the items that wait for an answer and are with nobody, in the order of the queue."""
    rows = WorkItem.objects.filter(batch__in=batches, state=WorkItem.State.OPEN)
    if not all(batch.blind for batch in batches):
        project = batches[0].project
        rows = rows.exclude(routing_port().hidden_items(project=project, item_path="item"))
    ordered = rows.order_by("priority", "order", "slot").values_list("item_id", flat=True)
    return list(dict.fromkeys(ordered))


def hand_out(
    *,
    run: Run,
    user: User,
    format_name: str,
    part: str,
    image_seconds: int | None = None,
    address_of: Callable[[str], str] = str,
) -> Callable[[], Iterator[Sequence[dict[str, Any]]]]:
    """The pages of what is given out. That it was stands in the audit trail.

    With `image_seconds` each image has an address that shows it for so long to whoever has it; `address_of`
    makes one of what is signed.
    """
    batches = batches_for_elsewhere(run, part)
    linked = {} if image_seconds is None else {"image_seconds": image_seconds}
    audit.record(
        project=run.project,
        actor=user,
        action="run.handed_out",
        target=f"run:{run.number}",
        data={"format": format_name, "part": part, **linked},
    )
    project = run.project
    secret = routing_port().model_columns(project=project)
    columns = [name for name in shown_in_order(project) if name not in secret]
    of_images = [name for name in columns_of_tasks(project) if name not in secret]
    plain = plain_names(project.columns)

    sign = None if image_seconds is None else signer(project=project, user=user, seconds=image_seconds)

    def link(item: Item) -> str | None:
        if sign is None or item.image is None:
            return None
        name, _until = sign(item.image.sha256)
        return address_of(name)

    def content(item: Item) -> dict[str, Any]:
        if format_name == HYPAC:
            linked = {} if (url := link(item)) is None else {"image_url": url}
            return {"item": item.pk, "name": item.external_id, **seen_of(item), **linked}
        if item.image_id is not None:
            seen = {(of_images or ["image"])[0]: link(item) or item.short_name}
        else:
            seen = _data(item, columns)
        data = {plain.get(name, name): value for name, value in seen.items()}
        return {"data": data, "meta": {META: {"item": item.pk, "external_id": item.external_id}}}

    def pages() -> Iterator[Sequence[dict[str, Any]]]:
        ids = waiting_work(batches)
        for start in range(0, len(ids), PAGE):
            these = ids[start : start + PAGE]
            found = Item.objects.select_related("image").in_bulk(these)
            yield [content(found[pk]) for pk in these if pk in found]

    return pages


def seen_of(item: Item) -> dict[str, Any]:
    """What people see of an item."""
    image = item.image
    return {"text": item.text, "fields": item.fields, "image": image.sha256 if image else None}


def _data(item: Item, columns: Sequence[str]) -> dict[str, Any]:
    """By the columns that the project's configuration for Label Studio shows."""
    cells = {name: item.data[name] for name in columns if name in item.data}
    return cells or {columns[0] if columns else "text": item.text}
