"""The one thing to do now in a project."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from annotation.jobs.context import tried_again_at
from annotation.jobs.progress import job_progress
from annotation.labelling.queue import BatchProgress
from annotation.models import Job
from routing.by_people.start import KIND as GIVE
from routing.common.states import State
from routing.overview.facts import Facts
from routing.runs.budget import stopped_at_budget
from routing.runs.commitments import waits_for_value
from routing.runs.delivered import run_with_model_labels
from routing.runs.expert.final import ANALYSE, DRAW, final_state
from routing.runs.later.items import objection_to_later
from routing.runs.people_left import only_they_can, people_left_in
from routing.runs.plan_options import loss_lacks
from routing.runs.pool import items_in_no_run
from routing.runs.usable_answers import stopped_at_unusable
from routing.sample.make import KIND as SAMPLE


@dataclass(frozen=True)
class NextStep:
    """The one thing to do now; without a `url_name` there is nothing to press, only to wait.

    `method`: get or post; `fragment` names the part of the page. `waited_for` is what those are told who may
    not do it: without it the text. `other` is another way to go on: what its button says, and the name of its
    page.
    """

    text: str
    button: str = ""
    url_name: str = ""
    url_kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = "get"
    fragment: str = ""
    waited_for: str = ""
    other: tuple[str, str] | None = None

    @property
    def address(self) -> str:
        """ "" where there is nothing to press."""
        if not self.url_name:
            return ""
        address = reverse(self.url_name, kwargs=self.url_kwargs)
        return f"{address}#{self.fragment}" if self.fragment else address

    @property
    def pressed_elsewhere(self) -> str:
        """What a link says that leads to the overview, where it is pressed; "" where there is nothing to."""
        return _("To the overview: %(button)s") % {"button": self.button} if self.button else ""


def next_step_of(facts: Facts) -> NextStep:
    """What this person can do now; whoever may not do it is told what is waited for."""
    if facts.project.archived_at is not None:
        return NextStep(_("The project is archived: it can be looked at, and nothing is to be done."))
    step, action = _wanted(facts)
    if (not step.url_name and not step.waited_for) or facts.access.allows(action):
        return step
    waiting = facts.state in (State.CALIBRATING, State.CHECKING, State.LABELLING) and facts.access.allows(
        "label"
    )
    if waiting and action != "label":
        return NextStep(_("Nothing waits for you here now."))
    return NextStep(_("A manager has to go on: %(step)s") % {"step": step.waited_for or step.text})


def _wanted(facts: Facts) -> tuple[NextStep, str]:
    here, run_here = facts.here, facts.run_here
    if facts.failed and facts.run and stopped_at_budget(facts.failed):
        text = _("The models have stopped at their budget. Raise it on the page of the run, and they go on.")
        return NextStep(text, _("Go to the run"), "run", run_here), "runs.view"
    if facts.failed and facts.run and stopped_at_unusable(facts.failed):
        text = _(
            "Many answers of the models cannot be used, and people have not been asked yet. Say on the page "
            "of the run whether it goes on."
        )
        return NextStep(text, _("Go to the run"), "run", run_here), "runs.view"
    if facts.failed and facts.failed.kind in _RETRIED and job_progress(facts.failed).can_be_retried:
        text = _("Something went wrong. What was finished is kept; look at the reason, then start it again.")
        return NextStep(text, _("See what happened"), "job", {**here, "job_id": facts.failed.pk}), "jobs.view"
    if paused := next((job for job in facts.jobs.values() if job.state == Job.State.PAUSED), None):
        text = _("The models are paused. Everything they answered is stored.")
        return NextStep(text, _("Resume"), "job_resume", {**here, "job_id": paused.pk}, "post"), "jobs.edit"
    if late := next((job for job in facts.jobs.values() if tried_again_at(job)), None):
        reason = late.error_in_words if facts.access.allows("jobs.view") else _("Work waits after a failure.")
        text = f"{reason} {job_progress(late).tries_again}"
        if not facts.access.allows("jobs.edit"):
            return NextStep(text), "project.view"
        return NextStep(text, _("Try now"), "job_try_now", {**here, "job_id": late.pk}, "post"), "jobs.edit"
    if SAMPLE in facts.jobs:
        return NextStep(
            _("The images and the models' answers are being made; it takes some seconds.")
        ), "project.view"
    if "import" in facts.jobs and facts.sources:
        return NextStep(_("Your data is being imported.")), "project.view"
    if "import" in facts.jobs:
        text = _("Your data is being imported. Meanwhile you can say which models label.")
        waited_for = _("Your data is being imported.")
        return NextStep(
            text, _("Go on with the models"), "sources", here, waited_for=waited_for
        ), "sources.edit"
    if not facts.items or facts.run is None:
        return _before_a_run(facts)
    if facts.state == State.PREPARING and waits_for_value(facts.run):
        text = _(
            "The run has committed to what it will draw from, and waits for what its draw is to come from."
        )
        return NextStep(text, _("Go to the run"), "run", run_here), "runs.edit"
    if stuck := _all_stuck(facts):
        words = ngettext(
            "Nobody is left to label %(count)s item: whoever could has skipped it, or answered already. "
            "The run goes on once you have decided about it.",
            "Nobody is left to label %(count)s items: whoever could has skipped them, or answered already. "
            "The run goes on once you have decided about each.",
            stuck,
        )
        text = words % {"count": f"{stuck:,}"}
        return NextStep(text, _("Decide"), "overview", here, fragment="stuck"), "work.decide"
    if facts.state == State.CALIBRATING and facts.calibration:
        if facts.run.by_expert and facts.calibration.finished:
            text = _(
                "The annotators' calibration labels are there. Have the expert asked; they are locked then."
            )
            return NextStep(text, _("Ask the expert"), "run_ask_expert", run_here, "post"), "runs.edit"
        if facts.run.measured_elsewhere and facts.calibration.finished:
            text = _(
                "Every calibration label is there. Lock them: then your program gets labels and models' "
                "answers, and measures the losses."
            )
            return NextStep(text, _("Ask for the losses"), "run_ask_losses", run_here, "post"), "runs.edit"
        found = _while_calibrating(facts.calibration, here, run_here)
        return _or_invite(facts, with_who_is_left(facts, found))
    if facts.state == State.CHECKING and facts.expert:
        return _while_calibrating(facts.expert, here, run_here)
    if facts.state == State.LOSSES:
        text = _("Your program measures the losses of models' answers. What is missing stands with the run.")
        return NextStep(text, _("Go to the run"), "run", run_here), "runs.edit"
    if facts.state == State.ANALYSED:
        text = _("The thresholds are known. Look at the certificate, then send every item to its source.")
        return NextStep(text, _("See what routing does"), "run", run_here), "runs.edit"
    if facts.state == State.LABELLING and facts.run and facts.routed:
        left = facts.routed.open + facts.routed.leased
        if not left and facts.expert is not None:
            left = facts.expert.open + facts.expert.leased
        if not left and facts.routed.disagreeing:
            return _to_review(facts.routed, here)
        words = (
            ngettext("%(left)s item waits for people.", "%(left)s items wait for people.", left)
            if facts.run.by_people and facts.routed.items == facts.routed.total
            else ngettext("%(left)s item is left for people.", "%(left)s items are left for people.", left)
            if facts.routed.items == facts.routed.total
            else ngettext(
                "%(left)s answer by people is still missing.",
                "%(left)s answers by people are still missing.",
                left,
            )
        )
        text = words % {"left": f"{left:,}"}
        found = (NextStep(text, _("Label"), "annotate", here), "label")
        return _or_invite(facts, with_who_is_left(facts, found))
    if facts.state == State.COMPLETE and (step := _final_audit(facts)):
        return step, "runs.edit"
    if facts.state == State.COMPLETE and "deliver_run" not in facts.jobs:
        beside = _models_labels_elsewhere(facts)
        if facts.overtaken:
            text = _("Every item is done. The last delivery does not have all labels: make another one.")
            other = (_("Deliveries"), "deliveries") if facts.access.allows("deliveries.view") else None
            if beside:  # asks there first
                step = NextStep(text + beside, _("Make another delivery"), "deliveries", here, other=other)
            else:
                step = NextStep(
                    text, _("Make another delivery"), "run_deliver", run_here, "post", other=other
                )
            return step, "deliveries.make"
        if facts.delivery:
            text = _("The labelled data is ready.") + beside
            other = (_("Have people label more"), "people_run") if facts.more_for_people else None
            if outside := _items_outside(facts):
                text, other = f"{text} {outside}", other or (_("Plan another run"), "plan")
            return NextStep(text, _("Download"), "deliveries", here, other=other), "deliveries.view"
        text = _("Every item is done. Make the files.") + beside
        if beside:
            return NextStep(text, _("Deliver"), "deliveries", here), "deliveries.make"
        return NextStep(text, _("Deliver"), "run_deliver", run_here, "post"), "deliveries.make"
    if facts.state == State.ROUTING and facts.run and facts.run.by_people:
        return NextStep(_("The items are being given to people.")), "project.view"
    return NextStep(_WAITING.get(facts.state, lambda: _("The files are being written."))()), "project.view"


def _models_labels_elsewhere(facts: Facts) -> str:
    """A sentence, with a space before it, where a delivery of the newest run lacks labels by models."""
    other = run_with_model_labels(facts.run) if facts.run else None
    if other is None:
        return ""
    words = _(
        "Labels by models are in the deliveries of run %(run)s, with those by people of both runs: deliver "
        "run %(run)s to have all of them."
    )
    return " " + words % {"run": other.number}


def _items_outside(facts: Facts) -> str:
    """How many items no run has, as they came later, and what to do about them; "" where there are none."""
    run = facts.run
    count = items_in_no_run(facts.project, of_rounds=run.by_people) if run else 0
    if run is None or not count:
        return ""
    words = ngettext("%(count)s item is in no run yet.", "%(count)s items are in no run yet.", count)
    told = words % {"count": f"{count:,}"}
    if run.by_people:
        what = _("Have people label more, or plan a run.")
    elif objection_to_later(run):
        what = _("Plan another run to have labels of all.")
    else:
        what = _("See what run %(run)s can take in, or plan another run.") % {"run": run.number}
    return f"{told} {what}"


def _final_audit(facts: Facts) -> NextStep | None:
    """What is to be done about the final audit, where one is planned and can go on."""
    state = final_state(facts.run) if facts.run and facts.run.final_sample is not None else None
    if state is None or not {DRAW, ANALYSE}.isdisjoint(facts.jobs):
        return None
    waited_for = _("Everything is labelled.")  # the expert is not told what she will be asked for
    if state.to_draw:
        text = _("Everything is labelled. Have the final audit drawn, before anything is delivered.")
        button = _("Draw the final audit")
        return NextStep(text, button, "run_final_audit", facts.run_here, "post", waited_for=waited_for)
    if state.to_analyse:
        text = _("The expert has labelled the final audit.")
        button = _("Analyse the final audit")
        url = "run_analyse_final_audit"
        return NextStep(text, button, url, facts.run_here, "post", waited_for=waited_for)
    return None


def _before_a_run(facts: Facts) -> tuple[NextStep, str]:
    """Data, models, a plan; first of all what the server lacks for the loss that the project names."""
    step, action = _to_prepare(facts)
    if not (lacks := loss_lacks(facts.project)):
        return step, action
    return replace(step, text=f"{lacks} {step.text}", waited_for=step.waited_for or step.text), action


def _to_prepare(facts: Facts) -> tuple[NextStep, str]:
    if not facts.items:
        return NextStep(
            _("Bring in the data."), _("Import data"), "import_upload", facts.here
        ), "items.import"
    if not facts.sources:
        why = _("There is no model yet, and nobody has been asked to label.")
        what = _(
            "Say which models label, and what they cost: answers that you have already count as one, columns "
            "of your data, or a file that you send. Or have people label everything, without any model."
        )
        other = people_label_everything()
        step = NextStep(f"{why} {what}", _("Add a model"), "sources", facts.here, waited_for=why, other=other)
        return step, "sources.edit"
    text = _("Choose how many errors you accept and how sure you want to be.")
    waited_for = _("No run has been planned yet.")
    other = people_label_everything()
    step = NextStep(text, _("Plan"), "plan", facts.here, waited_for=waited_for, other=other)
    return step, "runs.edit"


def _or_invite(facts: Facts, found: tuple[NextStep, str]) -> tuple[NextStep, str]:
    """Where somebody who is alone would have to label, other people can be had to do it."""
    step, action = found
    if action != "label" or not facts.alone:
        return found
    text = _("%(step)s Nobody but you takes part in this project.") % {"step": step.text}
    return replace(step, text=text, other=(_("Invite people"), "members")), action


def with_who_is_left(facts: Facts, found: tuple[NextStep, str]) -> tuple[NextStep, str]:
    """Where only some of those who label can still give what is missing, who they are."""
    step, action = found
    run = facts.run
    if run is None or action != "label" or (left := people_left_in(run)) is None:
        return found
    text = f"{step.text} {only_they_can(left, facts.access.user.get_username())}"
    if facts.access.user.get_username() in left.names:
        other = (_("Invite people"), "members") if facts.access.allows("members.edit") else None
        return replace(step, text=text, other=other), action
    if facts.access.allows("members.view") and facts.access.allows("label"):
        # There is nothing for them at the desk; more people may be had.
        return NextStep(text, _("See who takes part"), "members", facts.here), "members.view"
    return replace(step, text=text), action


def people_label_everything() -> tuple[str, str]:
    """The way without any model: what its button says, and the name of its page."""
    return _("People label everything"), "people_run"


def _all_stuck(facts: Facts) -> int:
    """How many items are left, where nobody but a manager can go on with any of them; else 0."""
    by_state: dict[str, BatchProgress | None] = {
        State.CALIBRATING: facts.calibration,
        State.CHECKING: facts.expert,
        State.LABELLING: facts.routed,
    }
    progress = by_state.get(facts.state)
    if facts.state == State.LABELLING and facts.expert and not (progress and progress.open + progress.leased):
        progress = facts.expert  # annotators are done
    return progress.stuck if progress is not None and progress.all_stuck else 0


def _to_review(progress: BatchProgress, here: dict[str, Any]) -> tuple[NextStep, str]:
    words = ngettext(
        "Every answer is there; people disagree about %(count)s item.",
        "Every answer is there; people disagree about %(count)s items.",
        progress.disagreeing,
    )
    text = words % {"count": f"{progress.disagreeing:,}"}
    return NextStep(text, _("Decide about them"), "review", here), "review"


def _while_calibrating(
    progress: BatchProgress, here: dict[str, Any], run_here: dict[str, Any]
) -> tuple[NextStep, str]:
    if progress.finished:
        text = _(
            "Every calibration label is there. Have the thresholds certified; the labels are then locked."
        )
        return NextStep(text, _("Analyse"), "run_analyse", run_here, "post"), "runs.edit"
    if not progress.open and not progress.leased:
        return _to_review(progress, here)
    left = progress.open + progress.leased
    words = (
        ngettext(
            "%(left)s calibration item waits for a person. Nothing can be seen before the last one.",
            "%(left)s calibration items wait for a person. Nothing can be seen before the last one.",
            left,
        )
        if progress.items == progress.total
        else ngettext(
            "%(left)s answer about calibration items is still missing. Nothing can be seen before the last "
            "one.",
            "%(left)s answers about calibration items are still missing. Nothing can be seen before the last "
            "one.",
            left,
        )
    )
    text = words % {"left": f"{left:,}"}
    return NextStep(text, _("Label"), "annotate", here), "label"


_RETRIED = (
    "import",
    SAMPLE,
    "prepare_run",
    "ask_expert",
    "analyse_run",
    "route_run",
    GIVE,
    "take_in",
    "deliver_run",
    "draw_final_audit",
    "analyse_final_audit",
)
_WAITING: dict[str, Callable[[], str]] = {
    State.PREPARING: lambda: _("The models are at work. Then people label the calibration set."),
    State.ANALYSING: lambda: _("The certificate is being computed."),
    State.ROUTING: lambda: _("Every item is being sent to its source."),
}
