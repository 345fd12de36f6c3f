"""Whether a run is due: what a script that is started every night asks before it starts one."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.models import Project
from routing.common.states import UNDER_WAY, State
from routing.models import Run
from routing.runs.delivered import is_delivered
from routing.runs.pool import has_new_items

UNFINISHED = (*UNDER_WAY, State.ANALYSED)


@dataclass(frozen=True)
class NotDue:
    """Why no run is to be started now, and the run that it is about, if there is one."""

    words: str
    run: Run | None


def why_not_due(
    project: Project,
    *,
    target: str | None,
    unless_under_way: bool,
    unless_undelivered: bool,
    if_new_items: bool,
) -> NotDue | None:
    """None where one may be started. Each of the three is asked about only where it is true: that another run
    is not finished, that the newest one is complete and no delivery of it was made since, and that each item
    for a run with this `target` was in the pool of an earlier one.
    """
    if unless_under_way and (run := project.runs.filter(state__in=UNFINISHED).first()):
        words = _("Run %(run)s is not finished: %(state)s.")
        return NotDue(words % {"run": run.number, "state": run.get_state_display().lower()}, run)
    if unless_undelivered and (run := undelivered_run(project=project)):
        return NotDue(_("Run %(run)s is complete and not delivered yet.") % {"run": run.number}, run)
    if if_new_items and not has_new_items(project=project, target=target):
        words = _("No run was started: there is no item for it that was in no pool before.")
        return NotDue(words, project.runs.order_by("-number").first())
    return None


def undelivered_run(*, project: Project) -> Run | None:
    """The newest run that was not cancelled, where it is complete and no delivery of it was made since.

    What filters found counts as none.
    """
    run = project.runs.exclude(state=Run.State.CANCELLED).order_by("-number").first()
    if run is None or run.state != Run.State.COMPLETE:
        return None
    return None if is_delivered(run) else run
