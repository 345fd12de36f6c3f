"""Sentences that travel as a code or a template with values. What a page could not say, or would drown in, is
no row of a project.
"""

import re
from collections.abc import Callable
from typing import Any

from annotation.models import Job, JobProblem
from hypac_site.portable.tables import Model, Row
from hypac_site.portable.values import Wrong
from routing.models import FinalAudit, Run

# With a width in it, `%(name)9999999999s` say, a sentence is as long as whoever wrote it likes.
_PLACE = re.compile(r"%(?:%|\(\w{1,60}\)[sdr])")


def check_sentences(model: Model, row: Row) -> None:
    """Raises Wrong where a sentence of the row cannot be said."""
    sentences = SENTENCES.get(model)
    if sentences is None:
        return
    try:
        for name in COLUMNS[model]:
            _check_templates(row[name])
        sentences(row)
    except Wrong:
        raise
    except Exception:  # whatever a page would raise as it says it
        raise Wrong("one of its sentences cannot be said") from None


def _job(row: Row) -> Any:
    names = ("error", "error_code", "error_params", "stage", "stage_params")
    job = Job(**{name: row[name] for name in names})
    return job.error_in_words, job.stage_in_words


def _problem(row: Row) -> Any:
    names = ("message", "message_params", "where", "where_params")
    problem = JobProblem(**{name: row[name] for name in names})
    return problem.message_in_words, problem.where_in_words


def _broken(row: Row) -> Any:
    return Run(invalid_reasons=row["invalid_reasons"]).broken_by


SENTENCES: dict[Model, Callable[[Row], Any]] = {
    FinalAudit: _broken,
    Job: _job,
    JobProblem: _problem,
    Run: _broken,
}
COLUMNS: dict[Model, tuple[str, ...]] = {
    FinalAudit: ("invalid_reasons",),
    Job: ("error_params", "stage_params"),
    JobProblem: ("message_params", "where_params"),
    Run: ("invalid_reasons",),
}


def _check_templates(value: Any) -> None:
    if isinstance(value, list):
        for inner in value:
            _check_templates(inner)
    elif isinstance(value, dict):
        template = value.get("template", "")
        if isinstance(template, str) and "%" in _PLACE.sub("", template):
            raise Wrong("one of its sentences has a place that no sentence has")
        for inner in value.values():
            _check_templates(inner)
