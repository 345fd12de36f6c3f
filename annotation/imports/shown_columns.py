"""Which imported columns people see of the items of a project."""

from annotation.imports.upload import IMPORT, Mapping
from annotation.jobs.running import UNFINISHED
from annotation.models import Project


def shown_columns(project: Project) -> set[str]:
    """Columns that any import shows, or has begun to: as a text or among the fields of its items."""
    shown: set[str] = set()
    for job in project.jobs.filter(kind=IMPORT):
        if job.state in UNFINISHED or (job.result.get("added") and not job.result.get("removed")):
            shown.update(Mapping.of(job.params).shown)
    return shown


def shown_in_order(project: Project) -> list[str]:
    """The same columns in the order in which the imports name them, the first import first."""
    shown = shown_columns(project)
    named = [
        name
        for job in project.jobs.filter(kind=IMPORT).order_by("pk")
        for name in Mapping.of(job.params).shown
        if name in shown
    ]
    return list(dict.fromkeys(named))
