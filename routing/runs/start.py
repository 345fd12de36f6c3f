"""A manager starts a run, and the job "prepare_run" brings it to its people: pool and draw, models, scores,
chains, then the calibration batch. Every step of it can be taken up again.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit, limits
from annotation.common.locks import locked_against_jobs
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import Project, User
from annotation.words import Words
from routing.common.states import State, change_state, was_cancelled
from routing.core import sampling
from routing.core.exact import plain
from routing.models import DrawItem, Measurement, PilotItem, PoolItem, Run, RunSource, Source, Spend
from routing.runs import every_score_runs
from routing.runs.budget import checked_budget
from routing.runs.build_plan import build_plan
from routing.runs.busy import refuse_while_busy
from routing.runs.chains import fix_chains
from routing.runs.commitments import commit_before_draw, commit_before_labels, draw_calibration_set
from routing.runs.draw import AT_ONCE, draw_pilot_outside, freeze_missing_pool, freeze_pool
from routing.runs.later.intakes import abandon_unfinished
from routing.runs.ledger import refuse_without_promise
from routing.runs.measurements import measured_for
from routing.runs.missing_answers import missing_answers, refuse_missing
from routing.runs.plan import PlanOutlook, outlook_of_plan, score_for, sources_of
from routing.runs.plan_fields import PlanFields
from routing.runs.pool import last_place
from routing.runs.predict import PendingItems, on_calibration_set, predict_missing
from routing.runs.reference_outlook import warning_of_references
from routing.runs.roster import people_of, reference_audit_data, store_roster, who_is_asked
from routing.runs.score import copy_scores_to_pool, score_missing, score_of
from routing.runs.source_changes import fingerprint_now
from routing.runs.usable_answers import accepted_unusable, record_unusable_accepted, refuse_unusable
from routing.sources.usability import usability_of_sources
from routing.sources.warnings import confirmation_question

CALIBRATION_PRIORITY = 1


def start_run(
    *,
    project: Project,
    user: User | None,
    entropy: int | None = None,
    budget: Decimal | None = None,
    allow_uncertifiable: bool = True,
    accept_unusable: bool | None = None,
    accept_dearer: bool = True,
    accept_missing: bool = True,
    **fields: Any,
) -> Run:
    """Freeze the pool, draw pilot and calibration set, store all of it, and let the models begin (job
    "prepare_run", which freezes a large pool before anything else). `fields` are those of `PlanFields`.
    `budget` is the most that the models may cost, no part of the plan (`budget.set_budget` changes it).

    A plan that can certify nothing is refused unless `allow_uncertifiable`. Where many answers of a model
    cannot be used, the run stops before people are asked, unless `accept_unusable` (`run_usability`); where
    that is False and not None, it is not even started if that is known before. One with an expert that is
    expected to cost more than she does for everything is refused unless `accept_dearer`, and one that lacks
    answers that are sent in unless `accept_missing`.

    `entropy` seeds the draw: only to repeat a run, in tests and demonstrations; no browser may set it.

    Raises InputError, whose `where` names the field, and ConflictError where another run is under way.
    """
    if not allow_uncertifiable or accept_unusable is False or not accept_dearer:
        _refuse_unseen(
            outlook_of_plan(project=project, budget=budget, **fields),
            project,
            allow_uncertifiable=allow_uncertifiable,
            accept_unusable=accept_unusable is not False,
            accept_dearer=accept_dearer,
        )
    wanted = PlanFields(**fields)
    budget = checked_budget(budget)
    sources = sources_of(project, leave_out=wanted.leave_out)
    fingerprints = [fingerprint_now(source) for source in sources]
    score, score_params = score_for(project, sources[0], wanted)
    looked = (
        usability_of_sources(project, sources, score=score, score_params=score_params)
        if accept_unusable
        else None
    )
    seed = sampling.new_entropy() if entropy is None else entropy
    if not 0 <= seed < 2**128:
        raise InputError(_("The entropy is a whole number of at most 128 bits."), where="entropy")
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_while_busy(project)
        if not accept_missing:  # only now nothing is imported, and no answer sent
            refuse_missing(missing_answers(project, sources, target=wanted.target))
        measurement = _measurement(project, sources, fingerprints, wanted)
        if measurement is not None:
            wanted = replace(wanted, pilot_size=measurement.size)
        built = build_plan(project=project, sources=sources, fields=wanted)
        plan, asking, people = built.plan, built.sampling, people_of(project, wanted)
        refuse_without_promise(project, plan)
        limits.refuse_more(
            project.runs.all(),
            limits.RUNS,
            _("A project has at most %(most)s runs. Go on in a copy of it."),
            code="too_many_runs",
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
                    measurement=measurement,
                    human_cost=project.human_cost,
                    **built.reference.columns,
                    later_audit_share=built.later_audit_share,
                    draw_from=wanted.draw_from,
                    consensus=project.consensus,
                    budget=budget,
                    accepts_unusable=bool(accept_unusable),
                    pool_size=plan.pool_size,
                    entropy=str(seed),
                    salt=sampling.make_salt(seed),
                    created_by=user,
                )
        except IntegrityError:
            raise ConflictError(
                _("Run %(number)s was started just now. It goes on by itself.") % {"number": number},
                code="started_just_now",
            ) from None
        RunSource.objects.bulk_create(
            RunSource.of(source, run=run, position=position, fingerprint=fingerprint)
            for position, (source, fingerprint) in enumerate(zip(sources, fingerprints, strict=True), start=1)
        )
        store_roster(run, people)
        abandon_unfinished(project)
        # Nothing that is imported from here on belongs to the pool.
        frozen = {"pilot": plan.pilot, "last": last_place(project)}
        if plan.pool_size <= AT_ONCE:
            freeze_pool(run, **frozen)
        audit.record(
            project=project,
            actor=user,
            action="run.started",
            target=f"run:{number}",
            data={
                "epsilon": str(plan.epsilon),
                "alpha": str(plan.alpha),
                "target": plan.target,
                **{"bound": run.bound, "rule": plan.rule, "loss": plan.loss, "score": score},
                "m": plan.m,
                "p": asking.column or str(plan.p),
                "pool_size": plan.pool_size,
                **({"overlap": [run.overlap, plain(run.overlap_share)]} if run.overlap > 1 else {}),
                "budget": None if budget is None else plain(budget),
                **({"left_out": list(wanted.leave_out)} if wanted.leave_out else {}),
                **({"measurement": measurement.pk} if measurement else {}),
                **reference_audit_data(run, people),
                **({} if (share := built.later_audit_share) is None else {"later_audit_share": plain(share)}),
                **({"accepts_unusable": True} if accept_unusable else {}),
                "seed": "given" if entropy is not None else "from the system",
            },
        )
        if looked and looked.asking:
            record_unusable_accepted(run=run, user=user, what=accepted_unusable(looked))
        jobs.enqueue(
            project=project,
            kind_name="prepare_run",
            params={"run": run.pk, **frozen},
            unique_key=f"prepare_run:{run.pk}",
            user=user,
        )
    return run


def _refuse_unseen(
    seen: PlanOutlook,
    project: Project,
    *,
    allow_uncertifiable: bool,
    accept_unusable: bool,
    accept_dearer: bool,
) -> None:
    """Raises InputError, its `where` "anyway", "accept_unusable" or "accept_dearer", where a run with this
    outlook is not what whoever starts it has said that it may be.
    """
    if not allow_uncertifiable and not seen.statistics.certifiable:
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
        raise InputError(f"{confirmation_question(seen.looked.asking)} {then}", where="accept_unusable")
    if not accept_dearer and (words := warning_of_references(project, seen)):
        then = _(
            "Nothing was started. If you want it all the same, start the run with accept_dearer = true, "
            "which only the start takes, or --accept-dearer on the command line."
        )
        raise InputError(f"{words} {then}", where="accept_dearer")


def _measurement(
    project: Project, sources: Sequence[Source], fingerprints: Sequence[str], fields: PlanFields
) -> Measurement | None:
    """What was measured, where the run is to take it as its pilot: where it still fits, and no size of
    another pilot is asked for.

    Raises ConflictError while models are being measured, and where a server now answers as another model.
    """
    if fields.pilot_size is not None:
        return None
    measured = measured_for(project, target=fields.target, sources=sources)
    if measured.under_way:
        words = _("The models are being measured. Wait until that is done, or stop it and discard it.")
        raise ConflictError(words, code="being_measured")
    found = measured.usable
    if found is not None:
        asked_as = dict(found.sources.values_list("source", "fingerprint"))
        for source, fingerprint in zip(sources, fingerprints, strict=True):
            if asked_as[source.pk] != fingerprint:
                raise ConflictError(
                    _(
                        "%(source)s answers as another model than when it was measured. Discard the "
                        "measurement, or measure again."
                    )
                    % {"source": source.name},
                    code="source_not_as_measured",
                )
    return found


def prepare_run(context: JobContext) -> dict[str, object]:
    """The job "prepare_run". What is done already is left as it is."""
    runs = Run.objects.select_related("project")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state != State.PREPARING:
        return {"state": run.state}
    freeze_missing_pool(context, run)
    models = _Models(context, run)
    population = run.target == Run.Target.POPULATION
    models.answer_for_pool()
    if not population:
        models.answer_for_pilot()
    refuse_unusable(run, models.run_sources[:1] if population else models.run_sources)
    copy_scores_to_pool(context, run, models.run_sources[0])
    if not population:
        fix_chains(context, run, models.run_sources)
    commit_before_draw(context, run, models.run_sources)
    if not draw_calibration_set(context, run):
        return {"state": run.state, "waits_for": run.draw_from}
    if population:  # the pilot, and what the chains are built on, must not be in the draw
        draw_pilot_outside(context, run)
        models.answer_for_pilot()
        refuse_unusable(run, models.run_sources)
        fix_chains(context, run, models.run_sources)
    models.answer_for_calibration_set()
    refuse_unusable(run, models.run_sources)
    commit_before_labels(context, run, models.run_sources)
    _ask_people(context, run)
    return {"state": run.state}


class _Models:
    """The models of a run at work, one after another: who answers for what, before people are asked."""

    def __init__(self, context: JobContext, run: Run) -> None:
        self._context, self._run, self._done = context, run, 0
        self.run_sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
        self._pool = PendingItems([PoolItem.objects.filter(run=run)])
        self._pilot = PendingItems([PilotItem.objects.filter(run=run)])
        self._asked = PendingItems([DrawItem.objects.filter(draw__run=run, asked=True)])
        first_answers = run.pool_size + self._later * context.params["pilot"]
        with context.chunk(total=first_answers + (0 if self._lazily else self._later * int(run.m * run.p))):
            pass

    @property
    def _later(self) -> int:
        return len(self.run_sources) - 1

    @property
    def _lazily(self) -> bool:
        """Whether the chains have to say first which of the later models the calibration set needs."""
        return every_score_runs.uses_every_score(self._run)

    def answer_for_pool(self) -> None:
        first = self.run_sources[0]
        self._answer(first, self._pool, Spend.Stage.POOL, Words.name(first.source.name))
        self._score([first])

    def answer_for_pilot(self) -> None:
        for run_source in self.run_sources[1:]:
            says = Words(gettext_noop("%(source)s on the pilot"), source=run_source.source.name)
            self._answer(run_source, self._pilot, Spend.Stage.PILOT, says)
        self._score(self.run_sources[1:])

    def answer_for_calibration_set(self) -> None:
        """Where every model's own score decides, those that the tests need whatever the labels: others wait
        until these are locked (`certify.analyse_run`), but for what is measured elsewhere before the tests.
        """
        needed = self.run_sources[1:]
        if self._lazily and not self._run.measured_elsewhere:
            needed = [self.run_sources[k] for k in every_score_runs.chains_of(self._run).on_all_asked]
        with self._context.chunk(total=self._done + len(needed) * self._asked.count):
            pass
        for run_source in needed:
            says = on_calibration_set(run_source.source.name)
            self._answer(run_source, self._asked, Spend.Stage.CALIBRATION, says)
        self._score(needed)

    def _answer(self, run_source: RunSource, items: PendingItems, stage: Spend.Stage, says: Words) -> None:
        self._done += predict_missing(
            self._context,
            frozen_source=run_source,
            items=items,
            stage=stage.value,
            says=says,
            done=self._done,
        )

    def _score(self, run_sources: Sequence[RunSource]) -> None:
        for run_source in run_sources:
            score_missing(self._context, run_source=run_source, score=score_of(self._run, run_source))


def _ask_people(context: JobContext, run: Run) -> None:
    """Make the calibration batch: blind, in random order, before all other work."""
    asked = DrawItem.objects.filter(draw__run=run, asked=True).order_by("item_id")
    with context.chunk(stage=Words(gettext_noop("Calibration set"))):
        batch = queue.create_batch(
            project=run.project,
            item_ids=list(asked.values_list("item_id", flat=True)),
            blind=True,
            priority=CALIBRATION_PRIORITY,
            entropy=sampling.new_entropy(),
            overlap=run.overlap,
            overlap_share=run.overlap_share,
            people=who_is_asked(run),
            third_decides=run.reference == Run.Reference.SETTLED,
        )
        change_state(
            run,
            before=State.PREPARING,
            after=State.CALIBRATING,
            calibration_batch=batch,
            refusal=was_cancelled(run),
        )
