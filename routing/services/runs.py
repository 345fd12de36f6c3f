"""What a manager does with a run: start it, have it analysed, have it routed, cancel it."""

from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import jobs, limits, queue
from annotation.errors import ConflictError, InputError
from annotation.models import Job, Project, User
from annotation.services import audit
from annotation.services.imports import IMPORT
from annotation.services.withdrawal import withdraw
from routing.backends import BackendError
from routing.core import sampling
from routing.core.exact import plain
from routing.models import Run, RunSource
from routing.runs.budget import abandon, checked_budget
from routing.services import validity
from routing.services.freeze import AT_ONCE, freeze
from routing.services.plan_fields import PlanFields
from routing.services.plans import Outlook, build_plan, outlook, score_for, sources_of
from routing.services.run_sources import changed_sources, fingerprint_now
from routing.services.run_usability import accepted, record_accepted
from routing.services.sent_answers import refuse_while_sending
from routing.services.states import BUSY, CANCELLABLE, UNDER_WAY, State, move
from routing.services.usability import look_at
from routing.services.usability_words import question

__all__ = ["Outlook", "analyse", "cancel_run", "outlook", "route", "start_run", "start_run_knowingly"]


def start_run(
    *,
    project: Project,
    user: User | None,
    entropy: int | None = None,
    budget: Decimal | None = None,
    accept_unusable: bool = False,
    **fields: Any,
) -> Run:
    """Freeze the pool, draw pilot and calibration set, store all of it, and let the models begin (job
    "prepare_run", which freezes a large pool before anything else). `fields` are those of `PlanFields`.
    `budget` is the most that the models may cost; it is no part of the plan and may be changed later
    (`budget.set_budget`). Where many answers of a model cannot be used, the run stops before people are
    asked, unless `accept_unusable` (`run_usability`).

    `entropy` seeds the draw; leave it out except where a run has to be repeated, in tests and
    demonstrations. Nothing that comes from a browser may set it.

    Raises InputError, whose `where` names the field, and ConflictError where another run is under way.
    """
    wanted = PlanFields(**fields)
    budget = checked_budget(budget)
    sources = sources_of(project)
    fingerprints = [fingerprint_now(source) for source in sources]
    score, score_params = score_for(project, sources[0], wanted)
    looked = look_at(project, sources, score=score, score_params=score_params) if accept_unusable else None
    seed = sampling.new_entropy() if entropy is None else entropy
    if seed < 0 or seed >= 2**128:
        raise InputError(_("The entropy is a whole number of at most 128 bits."), where="entropy")
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        _refuse_while_busy(project)
        plan, asking = build_plan(project=project, sources=sources, fields=wanted)
        limits.refuse_more(
            project.runs.all(),
            limits.RUNS,
            _("A project has at most %(most)s runs. Go on in a copy of it."),
        )
        number = (project.runs.aggregate(last=Max("number"))["last"] or 0) + 1
        try:
            with transaction.atomic():
                run = Run.objects.create(
                    project=project,
                    number=number,
                    epsilon=plan.epsilon,
                    alpha=plan.alpha,
                    target=plan.target,
                    m=plan.m,
                    p=plan.p,
                    p_column=asking.column,
                    p_min=plan.p_min,
                    bound=plan.bound_rule().name,
                    rule=plan.rule,
                    split_share=plan.split_share,
                    whole_size=plan.data_set_size,
                    score=score,
                    score_params=score_params,
                    loss=plan.loss,
                    loss_params=dict(plan.loss_params),
                    human_cost=project.human_cost,
                    overlap=project.overlap,
                    overlap_share=project.overlap_share,
                    consensus=project.consensus,
                    budget=budget,
                    accepts_unusable=accept_unusable,
                    pool_size=plan.pool_size,
                    entropy=str(seed),
                    salt=sampling.make_salt(seed),
                    created_by=user,
                )
        except IntegrityError:
            raise ConflictError(
                _("Run %(number)s was started just now. It goes on by itself.") % {"number": number}
            ) from None
        RunSource.objects.bulk_create(
            RunSource(
                run=run,
                position=position,
                source=source,
                fingerprint=fingerprint,
                cost_per_label=source.cost_per_label,
                cost_function=source.cost_function,
                prices=source.prices,
            )
            for position, (source, fingerprint) in enumerate(zip(sources, fingerprints, strict=True), start=1)
        )
        # Nothing that is imported from here on belongs to the pool.
        last = project.items.aggregate(last=Max("position"))["last"]
        frozen = {"pilot": plan.pilot, "last": last}
        if plan.pool_size <= AT_ONCE:
            freeze(run, **frozen)
        audit.record(
            project=project,
            actor=user,
            action="run.started",
            target=f"run:{number}",
            data={
                "epsilon": str(plan.epsilon),
                "alpha": str(plan.alpha),
                "target": plan.target,
                "bound": run.bound,
                "rule": plan.rule,
                "loss": plan.loss,
                "score": score,
                "m": plan.m,
                "p": asking.column or str(plan.p),
                "pool_size": plan.pool_size,
                **({"overlap": [run.overlap, plain(run.overlap_share)]} if run.overlap > 1 else {}),
                "budget": None if budget is None else plain(budget),
                **({"accepts_unusable": True} if accept_unusable else {}),
                "seed": "given" if entropy is not None else "from the system",
            },
        )
        if looked and looked.asking:
            record_accepted(run=run, user=user, what=accepted(looked))
        _enqueue(run, user, "prepare_run", **frozen)
    return run


def start_run_knowingly(
    *, project: Project, user: User, anyway: bool = False, accept_unusable: bool = False, **fields: Any
) -> Run:
    """As `start_run`, for programs: a run that can certify nothing starts only where `anyway` says so, one
    with a source of which many answers cannot be used only where `accept_unusable` does.

    Raises InputError, its `where` "anyway" or "accept_unusable", as well.
    """
    seen = outlook(project=project, **fields)
    if not anyway and not seen.statistics.certifiable:
        raise InputError(
            _(
                "With this plan too few labels come together to certify anything: people would label every "
                "item. Draw more items, or accept more errors or a higher risk; or start the run with "
                "anyway = true, which only the start takes, or --anyway on the command line."
            ),
            where="anyway",
        )
    if seen.looked.asking and not accept_unusable:
        then = _(
            "Nothing was started. Mend the source, or start the run with accept_unusable = true, which only "
            "the start takes, or --accept-unusable on the command line."
        )
        raise InputError(f"{question(seen.looked.asking)} {then}", where="accept_unusable")
    return start_run(project=project, user=user, accept_unusable=accept_unusable, **fields)


def analyse(*, run: Run, user: User | None) -> Job:
    """Lock the calibration labels and have the thresholds certified (job "analyse_run").

    Raises ConflictError, in words, before every asked item is labelled and settled or given up, and after
    the one analysis of a draw.
    """
    run.refresh_from_db()
    if run.state in (State.ANALYSED, State.ROUTING, State.LABELLING, State.COMPLETE):
        raise ConflictError(
            _("Run %(run)s has been analysed. A draw is analysed once; another look needs a new run.")
            % {"run": run.number}
        )
    if run.state != State.CALIBRATING or run.calibration_batch is None:
        raise ConflictError(
            _("Run %(run)s cannot be analysed now: %(state)s.")
            % {"run": run.number, "state": run.get_state_display().lower()}
        )
    with transaction.atomic():
        progress = queue.batch_progress(run.calibration_batch)
        if missing := progress.open + progress.leased:
            raise ConflictError(
                _(
                    "%(missing)s of %(total)s calibration items are still to be labelled. No result "
                    "can be seen before the last one; what nobody can label is to be given up by a "
                    "manager."
                )
                % {"missing": missing, "total": progress.total}
                if progress.items == progress.total
                else _(
                    "%(missing)s of %(total)s answers about %(items)s calibration items are still "
                    "missing. No result can be seen before the last one; what nobody can label is to "
                    "be given up by a manager."
                )
                % {"missing": missing, "total": progress.total, "items": progress.items}
            )
        if progress.disagreeing:
            raise ConflictError(
                _(
                    "People differ about %(disagreeing)s of %(items)s calibration items. A reviewer "
                    "has to decide about each before the analysis."
                )
                % {"disagreeing": progress.disagreeing, "items": progress.items}
            )
        # The batch before the run, as a correction and a decision take their locks: in another order, two of
        # them could wait for each other.
        queue.lock_batch(batch=run.calibration_batch)
        move(
            run,
            before=State.CALIBRATING,
            after=State.ANALYSING,
            refusal=_("Run %(run)s is being analysed already.") % {"run": run.number},
        )
        audit.record(
            project=run.project, actor=user, action="run.analysis_started", target=f"run:{run.number}"
        )
        return _enqueue(run, user, "analyse_run")


def route(*, run: Run, user: User | None) -> Job:
    """Send every item to its source, run the later models on their bands, and give people the rest (job
    "route_run").

    Also possible where nothing was certified: then everything goes to people. Raises ConflictError where the
    run is not analysed, where a source cannot be asked now, or where one answers differently than at the
    freeze; then the run is marked invalid.
    """
    run.refresh_from_db()
    if run.state in (State.ROUTING, State.LABELLING, State.COMPLETE):
        raise ConflictError(_("Run %(run)s has been routed already.") % {"run": run.number})
    if run.state != State.ANALYSED:
        raise ConflictError(_("Run %(run)s cannot be routed before it is analysed.") % {"run": run.number})
    if other := run.project.runs.filter(state__in=BUSY).exclude(pk=run.pk).first():
        raise ConflictError(
            _(
                "Run %(other)s is under way (%(state)s) with the same models and people. Finish or "
                "cancel it first."
            )
            % {"other": other.number, "state": other.get_state_display().lower()}
        )
    try:
        changed = changed_sources(run)
    except BackendError as error:
        then = _("put that right first") if error.permanent else _("try again later")
        raise ConflictError(
            _("%(message)s Nothing was routed; %(then)s.") % {"message": error.message, "then": then}
        ) from error
    if changed:
        validity.mark_invalid(run=run, reason=changed, actor=user)
        raise ConflictError(
            _("%(changed)s Nothing was routed. Put it back as it was, or start a new run.")
            % {"changed": changed}
        )
    with transaction.atomic():
        move(
            run,
            before=State.ANALYSED,
            after=State.ROUTING,
            refusal=_("Run %(run)s is being routed already.") % {"run": run.number},
        )
        audit.record(
            project=run.project, actor=user, action="run.routing_started", target=f"run:{run.number}"
        )
        return _enqueue(run, user, "route_run")


def cancel_run(*, run: Run, user: User | None) -> None:
    """End a run for good. Its draw is spent: alpha stays in the ledger, and labels stay with their items.

    A job at work on it stops at its next chunk, and nobody is asked any more; of a large run, a job goes on
    to write that to each work item (annotation.services.withdrawal). Raises ConflictError where the run is
    complete or cancelled.
    """
    with transaction.atomic():
        # Jobs and work before the run itself, as a job's chunk and a submitted label take their locks: in
        # another order, two of them could wait for each other.
        for job in run.project.jobs.filter(params__run=run.pk, state__in=jobs.UNFINISHED):
            jobs.cancel(job=job)
        # Their worker has lost its job, and nobody else will take it up.
        abandon(run.reservations.all())
        run.refresh_from_db()
        asking = [batch for batch in (run.calibration_batch, run.routed_batch) if batch is not None]
        withdraw(project=run.project, batches=asking, user=user)
        move(
            run,
            before=CANCELLABLE,
            after=State.CANCELLED,
            completed_at=timezone.now(),
            refusal=_("Run %(run)s is %(state)s and can no longer be cancelled.")
            % {"run": run.number, "state": run.get_state_display().lower()},
        )
        audit.record(project=run.project, actor=user, action="run.cancelled", target=f"run:{run.number}")


def _refuse_while_busy(project: Project) -> None:
    if run := project.runs.filter(state__in=UNDER_WAY).first():
        raise ConflictError(
            _("Run %(run)s is under way (%(state)s). Finish or cancel it first.")
            % {"run": run.number, "state": run.get_state_display().lower()}
        )
    # By the key, which the job that takes an import back has, too.
    if job := project.jobs.filter(unique_key=IMPORT, state__in=jobs.UNFINISHED).first():
        if job.kind == IMPORT:
            raise ConflictError(
                _("An import is under way. Wait until it has finished, so that the run covers all of it.")
            )
        raise ConflictError(
            _("%(known)s is already under way. Wait until it has finished, or cancel it.")
            % {"known": _(jobs.kind(job.kind).title)}
        )
    refuse_while_sending(project)


def _enqueue(run: Run, user: User | None, kind: str, **params: int) -> Job:
    return jobs.enqueue(
        project=run.project,
        kind_name=kind,
        params={"run": run.pk, **params},
        unique_key=f"{kind}:{run.pk}",
        user=user,
    )
