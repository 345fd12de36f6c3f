"""The two commitments of a run (routing.core.commitment), made and shown, and the draw between them.

The first holds what models have said so far, and all that is fixed. The draw comes after it, from this
server, or from a number that nobody could know when it was made.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit
from annotation.common.files import MODEL_OUTPUT, name_content, put_content
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, StoredFile, User
from annotation.words import Words
from routing.common.states import State
from routing.core.certificate import canonical_bytes, document_hash, thresholds_document
from routing.core.commitment import (
    SYSTEM,
    before_draw,
    before_labels,
    blank_line,
    drawn_entropy,
    fixed_chains,
    lines_document,
)
from routing.core.plan import Plan
from routing.core.reference.documents import fixed_reference, stated_plan
from routing.core.reference.words import SETTLED
from routing.core.rules import every_score, split_fixed_sequence
from routing.models import Commitment, Draw, Run, RunSource
from routing.models.commitments import BEFORE_DRAW, BEFORE_LABELS
from routing.runs.analysis_result import sources_document
from routing.runs.beacons import BEACONS, checked_value, draw_from_of, fetched, moment
from routing.runs.chains import chains_from_json
from routing.runs.commitment_queries import commitment_of, committed_lines, document_of, project_named
from routing.runs.draw import store_draw
from routing.runs.events import run_committed
from routing.runs.ledger import charge_draw, ledger, ledger_head, total_of
from routing.runs.load_calibration import drawn_rows
from routing.runs.plan import plan_of
from routing.runs.reference import expert_plan_of
from routing.runs.roster import roster_of

PART = 5_000
IN_MEMORY = 8 * 2**20
PATIENCE = 90.0
"""Seconds that a job waits for a beacon; then somebody has to ask for it again, or to write the value."""
PAUSE = 1.0


def makes_commitments(run: Run) -> bool:
    """Whether a run makes commitments: all do but those that were drawn before there were any."""
    return not Draw.objects.filter(run=run, randomness__isnull=True).exists()


def commit_before_draw(context: JobContext, run: Run, run_sources: list[RunSource]) -> None:
    """Make the first commitment, once."""
    if commitment_of(run, BEFORE_DRAW) or not makes_commitments(run):
        return
    population = run.target == Run.Target.POPULATION
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))

        def written() -> Iterator[bytes]:
            for line in _pool_lines(context, run, run_sources):
                file.write(line + b"\n")
                yield line

        items = lines_document(written())
        content = put_content(project=run.project, content=file)
    pilot = [] if population else _pilot_lines(run, run_sources)
    with context.chunk():
        run.refresh_from_db()
        if run.alpha_spent is None:
            run.alpha_spent = total_of(ledger(run)) - run.alpha
            run.save(update_fields=["alpha_spent"])
        document = before_draw(
            project=project_named(run),
            run=run.number,
            **fixed_before_draw(run, pilot=context.params["pilot"]),
            sources=sources_document(run_sources),
            items=items,
            pilot=None if population else lines_document(pilot),
            ledger=ledger_head(run.project),
            draw_from=draw_from_of(run.draw_from, timezone.now()),
        )
        _store(
            context,
            run,
            BEFORE_DRAW,
            document,
            items=name_content(
                project=run.project,
                content=content,
                original_name=f"{run.project.slug}-run{run.number}-committed.jsonl",
                media_type=MODEL_OUTPUT,
            ),
            pilot_lines=_text(pilot),
        )


def fixed_before_draw(run: Run, *, pilot: int) -> dict[str, Any]:
    """What the first commitment says of the run itself, as `before_draw` takes it."""
    plan = _stated_plan(run, pilot=pilot)
    return {
        "plan": plan,
        "entropy": int(run.entropy),
        "pool_hash": run.pool_hash,
        "chains": None if run.target == Run.Target.POPULATION else chains_hash(run, plan),
        "reference": _reference(run),
    }


def draw_calibration_set(context: JobContext, run: Run) -> bool:
    """Draw the calibration set, once; False where the number that it is to come from is not there yet."""
    if Draw.objects.filter(run=run).exists():
        return True
    committed = commitment_of(run, BEFORE_DRAW)
    if committed is None:
        raise ValueError(f"run {run.pk} is drawn before it has committed to anything")
    document = document_of(committed)
    value = _value(context, run, document["draw_from"])
    if value is None and run.draw_from != SYSTEM:
        return False
    randomness = {"kind": run.draw_from, "value": value}
    with context.chunk(stage=Words(gettext_noop("Calibration set"))):
        store_draw(
            run,
            entropy=drawn_entropy(int(run.entropy), committed.sha256, randomness),
            randomness=randomness,
        )
        charge_draw(run, commitment=committed.sha256)
    return True


def _value(context: JobContext, run: Run, named: Mapping[str, Any]) -> str | None:
    """What the draw comes from, of this server None; None, too, where it is not there yet."""
    run.refresh_from_db(fields=["randomness"])
    if run.randomness or named["kind"] not in BEACONS:
        return run.randomness or None
    context.progress(stage=Words(gettext_noop("Waiting for the beacon")))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if timezone.now() > moment(named) and (value := fetched(named)):
            with context.chunk():
                Run.objects.filter(pk=run.pk, randomness="").update(randomness=value)
            run.refresh_from_db(fields=["randomness"])
            return run.randomness
        context.stop_if_asked()
        time.sleep(PAUSE)
    return None


def waits_for_value(run: Run) -> bool:
    """Whether somebody has to give what the draw is to come from, or to have the beacon asked again."""
    return (
        run.state == State.PREPARING
        and is_drawn_elsewhere(run)
        and not _jobs(run).filter(state__in=jobs.UNFINISHED).exists()
    )


def is_drawn_elsewhere(run: Run) -> bool:
    """Whether the draw is not stored, but follows from what the run has committed to and a value from
    elsewhere, which anybody but this server may have by now.
    """
    return (
        run.draw_from != Run.DrawFrom.SYSTEM
        and commitment_of(run, BEFORE_DRAW) is not None
        and not Draw.objects.filter(run=run).exists()
    )


def give_value(*, run: Run, user: User | None, value: str) -> Job:
    """Draw from this text, which somebody else chose, or which the beacon gave; or, where it is empty, ask
    the beacon again.

    Raises InputError, `where` "value", where it cannot be one, and ConflictError where the run does not wait
    for it.
    """
    value = value.strip()
    if value or run.draw_from == Run.DrawFrom.NONCE:
        value = checked_value(run.draw_from, value)
    with transaction.atomic():
        stored = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("project").get(pk=run.pk)
        )
        if not waits_for_value(stored):
            raise ConflictError(
                _("Run %(run)s does not wait for anything that its draw comes from.")
                % {"run": stored.number},
                code="no_randomness_awaited",
            )
        if value:
            stored.randomness = value
            stored.save(update_fields=["randomness"])
            audit.record(
                project=stored.project,
                actor=user,
                action="run.randomness_given",
                target=f"run:{stored.number}",
                data={"from": stored.draw_from, "value": value},
            )
        last = _jobs(stored).order_by("-id").first()
        if last is None:
            raise ValueError(f"run {stored.pk} was never prepared")
        return jobs.enqueue(
            project=stored.project,
            kind_name="prepare_run",
            params=last.params,
            unique_key=f"prepare_run:{stored.pk}",
            user=user,
        )


def _jobs(run: Run) -> Any:
    return run.project.jobs.filter(kind="prepare_run", params__run=run.pk)


def commit_before_labels(context: JobContext, run: Run, run_sources: list[RunSource]) -> None:
    """Make the second commitment, once: the draw, and what models have said of its items."""
    first = commitment_of(run, BEFORE_DRAW)
    if first is None or commitment_of(run, BEFORE_LABELS):
        return
    population = run.target == Run.Target.POPULATION
    rows = drawn_rows(run, run_sources).rows
    pilot = _pilot_lines(run, run_sources) if population else []
    draw = Draw.objects.get(run=run)
    with context.chunk():
        run.refresh_from_db()
        document = before_labels(
            document_of(first),
            randomness=draw.randomness or {},
            rows=rows,
            pilot=lines_document(pilot) if population else None,
            chains=chains_hash(run, plan_of(run)) if population else None,
            rechecked=None if draw.critical is None else draw.critical["rechecked"],
            ledger=ledger_head(run.project),
        )
        _store(
            context,
            run,
            BEFORE_LABELS,
            document,
            pilot_lines=_text(pilot),
            draw_lines=_text([blank_line(row) for row in rows]),
        )


def _store(
    context: JobContext,
    run: Run,
    number: int,
    document: dict[str, Any],
    *,
    items: StoredFile | None = None,
    pilot_lines: str = "",
    draw_lines: str = "",
) -> None:
    written = canonical_bytes(document)[:-1].decode()
    made = Commitment.objects.create(
        run=run,
        number=number,
        document=written,
        sha256=document_hash(document),
        items=items,
        pilot_lines=pilot_lines,
        draw_lines=draw_lines,
    )
    audit.record(
        project=run.project,
        actor=context.job.created_by,
        action="run.committed",
        target=f"run:{run.number}",
        data={"commitment": number, "sha256": made.sha256},
    )
    run_committed(run, number=number, sha256=made.sha256, ledger=document["ledger"])


def chains_hash(run: Run, plan: Plan) -> str:
    """Of the chains, or slices, that a run has fixed."""
    frozen: dict[str, Any]
    if run.by_expert or plan.rule == every_score.RULE.name:
        frozen = dict(run.chains or {})
    elif plan.rule == split_fixed_sequence.RULE.name:
        frozen = {"slices": run.slices}
    else:
        frozen = {
            "chains": [
                {
                    "name": chain.name,
                    "policies": [
                        {
                            "thresholds": thresholds_document(policy.thresholds),
                            "counts": list(policy.counts),
                            "model_cost": policy.model_cost,
                            "people_cost": policy.people_cost,
                        }
                        for policy in chain.policies
                    ],
                }
                for chain in chains_from_json(run.chains or [])
            ]
        }
    return fixed_chains(frozen, plan.rule)


def _stated_plan(run: Run, *, pilot: int) -> Plan:
    """As the certificate will state it: with its pilot, also where that is drawn later."""
    plan = replace(plan_of(run), pilot_size=pilot)
    return stated_plan(expert_plan_of(run, plan)) if run.by_expert else plan


def _reference(run: Run) -> dict[str, Any] | None:
    if run.reference == Run.Reference.SETTLED:
        return {"kind": SETTLED}
    roster = roster_of(run) if run.by_expert else None
    return None if roster is None else fixed_reference(expert_plan_of(run, plan_of(run)), roster)


def _pool_lines(context: JobContext, run: Run, run_sources: list[RunSource]) -> Iterator[bytes]:
    context.progress(stage=Words(gettext_noop("What the run commits to")))
    pool = run.pool_items.order_by("position")
    rows = pool.values_list("item", "item__external_id", "item__content_hash", "u")
    for start in range(0, run.pool_size, PART):
        part = list(rows.filter(position__gte=start, position__lt=start + PART))
        yield from committed_lines(run, run_sources, part)
        context.stop_if_asked()


def _pilot_lines(run: Run, run_sources: list[RunSource]) -> list[bytes]:
    rows = list(
        run.pilot_items.order_by("order").values_list("item", "item__external_id", "item__content_hash")
    )
    in_pool: dict[int, float | None] = {}
    for start in range(0, len(rows), 500):
        part = run.pool_items.filter(item__in=[item for item, *_ in rows[start : start + 500]])
        in_pool |= dict(part.values_list("item", "u"))
    return list(committed_lines(run, run_sources, [(*row, in_pool.get(row[0])) for row in rows]))


def _text(lines: list[bytes]) -> str:
    return "".join(line.decode() + "\n" for line in lines)
