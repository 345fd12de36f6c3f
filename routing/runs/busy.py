"""What keeps a pool from being drawn: another run, an import, predictions that are sent in."""

from collections.abc import Collection

from django.utils.translation import gettext as _

from annotation.errors import ConflictError, UnderWayError
from annotation.imports.columns import IMPORT
from annotation.jobs import jobs
from annotation.models import Project
from routing.common.states import UNDER_WAY
from routing.runs.later.intakes import refuse_while_taking_in
from routing.sources.sent_answers import refuse_while_sending


def refuse_while_busy(project: Project) -> None:
    """Raises ConflictError while a run, an import or predictions under way keep a pool from being drawn."""
    refuse_beside_run(project, UNDER_WAY)
    # By the key, which the job that takes an import back has, too.
    if job := project.jobs.filter(unique_key=IMPORT, state__in=jobs.UNFINISHED).first():
        if job.kind == IMPORT:
            raise ConflictError(
                _("An import is under way. Wait until it has finished, so that the run covers all of it."),
                code="import_under_way",
            )
        raise UnderWayError(_(jobs.kind(job.kind).title))
    refuse_while_taking_in(project)
    refuse_while_sending(project)


def refuse_beside_run(project: Project, states: Collection[str]) -> None:
    """Raises ConflictError while a run of the project is in one of these states."""
    if run := project.runs.filter(state__in=states).first():
        raise ConflictError(
            _("Run %(run)s is under way (%(state)s). Finish or cancel it first.")
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="other_run_under_way",
        )
