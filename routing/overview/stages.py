"""A project as a chain of stages: how far each of them is."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.labelling.queue import BatchProgress
from routing.by_people.start import KIND as GIVE
from routing.common.states import State
from routing.overview.facts import Facts

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


def stages_of(facts: Facts) -> list[Stage]:
    """In their order, from the import to the delivery."""
    by_people = facts.run is not None and facts.run.by_people
    return [make(facts) for make in (_STAGES_BY_PEOPLE if by_people else _STAGES)]


def _import(facts: Facts) -> Stage:
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


def _sources(facts: Facts) -> Stage:
    state = DONE if facts.sources else (CURRENT if facts.items else WAITING)
    detail = _("no model yet")
    if facts.sources:
        words = ngettext("%(count)s model and people", "%(count)s models and people", facts.sources)
        detail = words % {"count": facts.sources}
    return Stage("sources", _("Sources"), state, None, None, detail, "sources", facts.here, "sources.edit")


def _plan(facts: Facts) -> Stage:
    ready = facts.items and facts.sources
    state = DONE if facts.run else (CURRENT if ready else WAITING)
    detail = _("Run %(number)s") % {"number": facts.run.number} if facts.run else ""
    return Stage("plan", _("Plan"), state, None, None, detail, "plan", facts.here, "runs.edit")


def _predict(facts: Facts) -> Stage:
    if facts.state == State.PREPARING:
        state = FAILED if facts.has_failed("prepare_run") else CURRENT
    else:
        state = DONE if facts.run else WAITING
    return _by_job(facts, "predict", _("Predict and draw"), state, "prepare_run")


def _by_job(facts: Facts, key: str, title: str, state: str, kind: str) -> Stage:
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


def _by_people(facts: Facts, key: str, title: str, state: str, progress: BatchProgress) -> Stage:
    """A stage in which people label; its progress is that of their batch."""
    return Stage(
        key=key,
        title=title,
        state=state,
        done=progress.done + progress.unlabelable,
        total=progress.total,
        detail=_given_up(progress),
        url_name="annotate",
        url_kwargs=facts.here,
        action="label",
    )


def _calibrate(facts: Facts) -> Stage:
    progress = facts.calibration
    if progress is None:
        return Stage("calibrate", _("Calibration labels"), WAITING)
    if facts.state == State.CHECKING and facts.expert is not None:
        return _by_people(facts, "calibrate", _("Calibration labels"), CURRENT, facts.expert)
    state = CURRENT if facts.state == State.CALIBRATING else DONE
    return _by_people(facts, "calibrate", _("Calibration labels"), state, progress)


def _certify(facts: Facts) -> Stage:
    finished = facts.calibration is not None and facts.calibration.finished
    if facts.state == State.ANALYSING:
        state = FAILED if facts.has_failed("analyse_run") else CURRENT
    elif facts.state == State.CALIBRATING:
        state = CURRENT if finished else WAITING
    elif facts.state == State.LOSSES:
        state = CURRENT
    elif facts.state == State.CHECKING:
        state = CURRENT if facts.expert is not None and facts.expert.finished else WAITING
    else:
        state = WAITING if facts.state in ("", State.PREPARING) else DONE
    stage = _by_job(facts, "certify", _("Certify"), state, "analyse_run")
    return replace(stage, detail=_("marked invalid")) if facts.run and facts.run.invalid_reasons else stage


def _route(facts: Facts) -> Stage:
    if facts.state == State.ROUTING:
        state = FAILED if facts.has_failed("route_run") else CURRENT
    elif facts.state == State.ANALYSED:
        state = CURRENT
    else:
        state = DONE if facts.state in (State.LABELLING, State.COMPLETE) else WAITING
    return _by_job(facts, "route", _("Route"), state, "route_run")


def _given(facts: Facts) -> Stage:
    """Which items people label."""
    at_work = FAILED if facts.has_failed(GIVE) else CURRENT
    state = at_work if facts.state == State.ROUTING else DONE
    stage = _by_job(facts, "given", _("Items for people"), state, GIVE)
    items = facts.run.pool_size if facts.run else 0
    return replace(stage, detail=stage.detail or _("%(count)s items") % {"count": f"{items:,}"})


def _annotate(facts: Facts) -> Stage:
    progress = facts.routed
    if progress is None:
        state = DONE if facts.state == State.COMPLETE else WAITING
        detail = _("nothing was left after the calibration") if state == DONE else ""
        return Stage("annotate", _("Labels by people"), state, detail=detail)
    state = CURRENT if facts.state == State.LABELLING else DONE
    return _by_people(facts, "annotate", _("Labels by people"), state, progress)


def _deliver(facts: Facts) -> Stage:
    job = facts.jobs.get("deliver_run")
    if job:
        state = CURRENT
    elif facts.has_failed("deliver_run"):
        state = FAILED
    elif facts.state == State.COMPLETE:
        state = DONE if facts.delivery and not facts.overtaken else CURRENT
    else:
        state = WAITING
    return Stage(
        key="deliver",
        title=_("Deliver"),
        state=state,
        done=job.done if job else None,
        total=job.total if job else None,
        detail=_delivered(facts),
        url_name="deliveries",
        url_kwargs=facts.here,
        action="deliveries.view",
    )


def _delivered(facts: Facts) -> str:
    if facts.delivery is None:
        return ""
    words = _("delivery %(number)s, without all labels") if facts.overtaken else _("delivery %(number)s")
    return words % {"number": facts.delivery.number}


_STAGES: list[Callable[[Facts], Stage]] = [
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


_STAGES_BY_PEOPLE: list[Callable[[Facts], Stage]] = [_import, _given, _annotate, _deliver]
"""Of a run without any model."""


def _given_up(progress: BatchProgress) -> str:
    if not progress.unlabelable:
        return ""
    return _("%(count)s that nobody could label") % {"count": progress.unlabelable}
