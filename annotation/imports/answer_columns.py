"""Which columns of a project hold what people and models of another program said."""

from collections.abc import Iterable

from annotation.imports.formats.doccano import Doccano
from annotation.imports.formats.reserved import model_output
from annotation.jobs.running import UNFINISHED
from annotation.models import Project


def answer_columns(project: Project, further: Iterable[str] = ()) -> frozenset[str]:
    """Columns that nobody who labels may be shown: of the project, and of `further` (those of a file).

    Some are known by their names. Others are columns like any, except where an import had a format that puts
    answers into them; its job has their names for as long as anything of it is there.
    """
    found = set(model_output([*project.columns, *further]))
    facts = ("state", "params__format", "result__answers", "result__added", "result__removed")
    for state, format_name, answers, added, removed in project.jobs.filter(kind="import").values_list(*facts):
        if state in UNFINISHED or (added and not removed):
            found.update(answers or (Doccano.answers if format_name == Doccano.name else ()))
    return frozenset(found)
