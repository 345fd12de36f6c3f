"""A project as a chain of stages, with what to do next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation import jobs, queue
from annotation.models import Job, Project
from annotation.permissions import Access
from annotation.queue import BatchProgress
from annotation.selectors.job_progress import job_progress
from routing.models import Delivery, Run
from routing.selectors.failed_jobs import failed_job_of
from routing.selectors.model_money import ModelMoney, model_money
from routing.selectors.money import Paid, Savings, paid_by, savings
from routing.services.budget import stopped_at_budget
from routing.services.states import UNDER_WAY, State

DONE, CURRENT, WAITING, FAILED = "done", "current", "waiting", "failed"


@dataclass(frozen=True)
class Stage:
    """One stage. `done` of `total` items, both None where there is nothing to count.

    `url_name` and `url_kwargs` lead to its page, `action` is what one must be allowed to go there.
    """

    key: str
    title: str
    state: str
    done: int | None = None
    total: int | None = None
    detail: str = ""
    url_name: str = ""
    url_kwargs: dict[str, Any] = field(default_factory=dict)
    action: str = "project.view"


@dataclass(frozen=True)
class NextStep:
    """The one thing to do now; without a `url_name` there is nothing to press, only to wait.

    `method`: get or post.
    """

    text: str
    button: str = ""
    url_name: str = ""
    url_kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = "get"


@dataclass(frozen=True)
class Overview:
    """`run` is the newest that was not cancelled; `stuck` are items that everybody skipped; `failed_job`
    what ended badly.
    """

    stages: list[Stage]
    next_step: NextStep
    run: Run | None
    runs: list[Run]
    spend: list[Paid]
    savings: Savings | None
    money: ModelMoney | None
    running_jobs: list[Job]
    failed_job: Job | None
    stuck: int
    active: bool
    """Whether the numbers can change without anybody pressing a button here: then the page polls."""


def overview(project: Project, access: Access) -> Overview:
    """What the project's main page shows to this person."""
    runs = list(project.runs.order_by("-number"))
    run = next((run for run in runs if run.state != State.CANCELLED), None)
    running = list(project.jobs.filter(state__in=jobs.UNFINISHED).order_by("id"))
    failed = failed_job_of(project, run)
    facts = _Facts(
        project=project,
        access=access,
        run=run,
        items=project.items.count(),
        sources=project.sources.count(),
        calibration=_progress(run and run.calibration_batch),
        routed=_progress(run and run.routed_batch),
        jobs={job.kind: job for job in running},
        failed=failed,
        delivery=Delivery.objects.filter(run=run).first() if run else None,
    )
    stages = [make(facts) for make in _STAGES]
    may_look = access.allows("runs.view")
    spend = paid_by(run) if run and may_look else []
    return Overview(
        stages=stages,
        next_step=_next_step(facts),
        run=run,
        runs=runs if may_look else [],
        spend=spend,
        savings=savings(run, spend) if run and may_look else None,
        money=model_money(run) if run and may_look and run.state in UNDER_WAY else None,
        running_jobs=running if access.allows("jobs.view") else [],
        failed_job=failed if access.allows("jobs.view") else None,
        stuck=queue.stuck_items(project).count() if access.allows("work.decide") else 0,
        active=bool(running) or (run is not None and run.state in UNDER_WAY),
    )


@dataclass(frozen=True)
class _Facts:
    project: Project
    access: Access
    run: Run | None
    items: int
    sources: int
    calibration: BatchProgress | None
    routed: BatchProgress | None
    jobs: dict[str, Job]
    failed: Job | None
    delivery: Delivery | None

    @property
    def here(self) -> dict[str, Any]:
        return {"slug": self.project.slug}

    @property
    def run_here(self) -> dict[str, Any]:
        return {"slug": self.project.slug, "number": self.run.number if self.run else 0}

    @property
    def state(self) -> str:
        return self.run.state if self.run else ""

    def has_failed(self, kind: str) -> bool:
        return self.failed is not None and self.failed.kind == kind


def _progress(batch: Any) -> BatchProgress | None:
    return queue.batch_progress(batch) if batch else None


def _import(facts: _Facts) -> Stage:
    job = facts.jobs.get("import")
    if job:
        state = CURRENT
    elif facts.has_failed("import"):
        state = FAILED
    else:
        state = DONE if facts.items else CURRENT
    return Stage(
        key="import",
        title=_("Import"),
        state=state,
        done=job.done if job else None,
        total=job.total if job else None,
        detail=_("%(count)s items") % {"count": f"{facts.items:,}"},
        url_name="import_upload",
        url_kwargs=facts.here,
        action="items.import",
    )


def _sources(facts: _Facts) -> Stage:
    state = DONE if facts.sources else (CURRENT if facts.items else WAITING)
    detail = _("no model yet")
    if facts.sources:
        words = ngettext("%(count)s model and people", "%(count)s models and people", facts.sources)
        detail = words % {"count": facts.sources}
    return Stage("sources", _("Sources"), state, None, None, detail, "sources", facts.here, "sources.edit")


def _plan(facts: _Facts) -> Stage:
    ready = facts.items and facts.sources
    state = DONE if facts.run else (CURRENT if ready else WAITING)
    detail = _("Run %(number)s") % {"number": facts.run.number} if facts.run else ""
    return Stage("plan", _("Plan"), state, None, None, detail, "plan", facts.here, "runs.edit")


def _predict(facts: _Facts) -> Stage:
    if facts.state == State.PREPARING:
        state = FAILED if facts.has_failed("prepare_run") else CURRENT
    else:
        state = DONE if facts.run else WAITING
    return _by_job(facts, "predict", _("Predict and draw"), state, "prepare_run")


def _by_job(facts: _Facts, key: str, title: str, state: str, kind: str) -> Stage:
    """A stage of the run that one kind of job does; its progress is the job's."""
    job = facts.jobs.get(kind)
    return Stage(
        key=key,
        title=title,
        state=state,
        done=job.done if job else None,
        total=job.total if job else None,
        detail=job.stage if job else "",
        url_name="run" if facts.run else "",
        url_kwargs=facts.run_here,
        action="runs.view",
    )


def _calibrate(facts: _Facts) -> Stage:
    progress = facts.calibration
    if progress is None:
        return Stage("calibrate", _("Calibration labels"), WAITING)
    return Stage(
        key="calibrate",
        title=_("Calibration labels"),
        state=CURRENT if facts.state == State.CALIBRATING else DONE,
        done=progress.done + progress.unlabelable,
        total=progress.total,
        detail=_given_up(progress),
        url_name="annotate",
        url_kwargs=facts.here,
        action="label",
    )


def _certify(facts: _Facts) -> Stage:
    finished = facts.calibration is not None and facts.calibration.finished
    if facts.state == State.ANALYSING:
        state = FAILED if facts.has_failed("analyse_run") else CURRENT
    elif facts.state == State.CALIBRATING:
        state = CURRENT if finished else WAITING
    else:
        state = WAITING if facts.state in ("", State.PREPARING) else DONE
    return Stage(
        key="certify",
        title=_("Certify"),
        state=state,
        detail=_("marked invalid") if facts.run and facts.run.invalid_reason else "",
        url_name="run" if facts.run else "",
        url_kwargs=facts.run_here,
        action="runs.view",
    )


def _route(facts: _Facts) -> Stage:
    if facts.state == State.ROUTING:
        state = FAILED if facts.has_failed("route_run") else CURRENT
    elif facts.state == State.ANALYSED:
        state = CURRENT
    else:
        state = DONE if facts.state in (State.LABELLING, State.COMPLETE) else WAITING
    return _by_job(facts, "route", _("Route"), state, "route_run")


def _annotate(facts: _Facts) -> Stage:
    progress = facts.routed
    if progress is None:
        state = DONE if facts.state == State.COMPLETE else WAITING
        detail = _("nothing was left for people") if state == DONE else ""
        return Stage("annotate", _("Labels by people"), state, detail=detail)
    return Stage(
        key="annotate",
        title=_("Labels by people"),
        state=CURRENT if facts.state == State.LABELLING else DONE,
        done=progress.done + progress.unlabelable,
        total=progress.total,
        detail=_given_up(progress),
        url_name="annotate",
        url_kwargs=facts.here,
        action="label",
    )


def _deliver(facts: _Facts) -> Stage:
    job = facts.jobs.get("deliver_run")
    if job:
        state = CURRENT
    elif facts.has_failed("deliver_run"):
        state = FAILED
    elif facts.state == State.COMPLETE:
        state = DONE if facts.delivery else CURRENT
    else:
        state = WAITING
    delivery = facts.delivery
    return Stage(
        key="deliver",
        title=_("Deliver"),
        state=state,
        done=job.done if job else None,
        total=job.total if job else None,
        detail=_("delivery %(number)s") % {"number": delivery.number} if delivery else "",
        url_name="deliveries",
        url_kwargs=facts.here,
        action="deliveries.view",
    )


_STAGES: list[Callable[[_Facts], Stage]] = [
    _import,
    _sources,
    _plan,
    _predict,
    _calibrate,
    _certify,
    _route,
    _annotate,
    _deliver,
]


def _given_up(progress: BatchProgress) -> str:
    if not progress.unlabelable:
        return ""
    return _("%(count)s that nobody could label") % {"count": progress.unlabelable}


def _next_step(facts: _Facts) -> NextStep:
    """What this person can do now; whoever may not do it is told what is waited for."""
    step, action = _wanted(facts)
    if not step.url_name or facts.access.allows(action):
        return step
    waiting = facts.state in (State.CALIBRATING, State.LABELLING) and facts.access.allows("label")
    if waiting and action != "label":
        return NextStep(_("Nothing waits for you here now."))
    return NextStep(_("A manager has to go on: %(step)s") % {"step": step.text})


def _wanted(facts: _Facts) -> tuple[NextStep, str]:
    here, run_here = facts.here, facts.run_here
    if facts.failed and facts.run and stopped_at_budget(facts.failed):
        text = _("The models have stopped at their budget. Raise it on the page of the run, and they go on.")
        return NextStep(text, _("Go to the run"), "run", run_here), "runs.view"
    if facts.failed and facts.failed.kind in _RETRIED:
        text = _("Something went wrong. What was finished is kept; look at the reason, then start it again.")
        return NextStep(text, _("See what happened"), "job", {**here, "job_id": facts.failed.pk}), "jobs.view"
    if paused := next((job for job in facts.jobs.values() if job.state == Job.State.PAUSED), None):
        text = _("The models are paused. Everything they answered is stored.")
        return NextStep(text, _("Resume"), "job_resume", {**here, "job_id": paused.pk}, "post"), "jobs.edit"
    if late := next((job for job in facts.jobs.values() if jobs.tried_again_at(job)), None):
        reason = late.error if facts.access.allows("jobs.view") else _("Work waits after a failure.")
        text = f"{reason} {job_progress(late).tries_again}"
        if not facts.access.allows("jobs.edit"):
            return NextStep(text), "project.view"
        return NextStep(text, _("Try now"), "job_try_now", {**here, "job_id": late.pk}, "post"), "jobs.edit"
    if "import" in facts.jobs:
        return NextStep(_("Your data is being imported.")), "project.view"
    if not facts.items:
        return NextStep(_("Bring in the data."), _("Import data"), "import_upload", here), "items.import"
    if facts.run is None and not facts.sources:
        return (
            NextStep(_("Say which models label, and what they cost."), _("Add a source"), "sources", here),
            "sources.edit",
        )
    if facts.run is None:
        return (
            NextStep(
                _("Choose how many errors you accept and how sure you want to be."), _("Plan"), "plan", here
            ),
            "runs.edit",
        )
    if facts.state == State.CALIBRATING and facts.calibration:
        return _while_calibrating(facts.calibration, here, run_here)
    if facts.state == State.ANALYSED:
        text = _("The thresholds are known. Look at the certificate, then send every item to its source.")
        return NextStep(text, _("Route the items"), "run_route", run_here, "post"), "runs.edit"
    if facts.state == State.LABELLING and facts.routed:
        left = facts.routed.open + facts.routed.leased
        text = _("%(left)s items are left for people.") % {"left": f"{left:,}"}
        return NextStep(text, _("Label"), "annotate", here), "label"
    if facts.state == State.COMPLETE and "deliver_run" not in facts.jobs:
        if facts.delivery:
            text = _("The labelled data is ready.")
            return NextStep(text, _("Download"), "deliveries", here), "deliveries.view"
        text = _("Every item is done. Make the files.")
        return NextStep(text, _("Deliver"), "run_deliver", run_here, "post"), "deliveries.make"
    return NextStep(_WAITING.get(facts.state, lambda: _("The files are being written."))()), "project.view"


def _while_calibrating(
    progress: BatchProgress, here: dict[str, Any], run_here: dict[str, Any]
) -> tuple[NextStep, str]:
    if progress.finished:
        text = _(
            "Every calibration label is there. Have the thresholds certified; the labels are then locked."
        )
        return NextStep(text, _("Analyse"), "run_analyse", run_here, "post"), "runs.edit"
    left = progress.open + progress.leased
    text = _("%(left)s calibration items wait for a person. Nothing can be seen before the last one.") % {
        "left": f"{left:,}"
    }
    return NextStep(text, _("Label"), "annotate", here), "label"


_RETRIED = ("import", "prepare_run", "analyse_run", "route_run", "deliver_run")
_WAITING: dict[str, Callable[[], str]] = {
    State.PREPARING: lambda: _("The models are at work. Then people label the calibration set."),
    State.ANALYSING: lambda: _("The certificate is being computed."),
    State.ROUTING: lambda: _("Every item is being sent to its source."),
}
