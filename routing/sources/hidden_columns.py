"""Columns of the imported data that are model output."""

from annotation.errors import HypacError
from annotation.imports.columns import answer_columns
from annotation.models import Project
from routing.models import Source
from routing.sources.backend_for import backend_for
from routing.visibility import output_is_open


def hidden_columns(project: Project) -> frozenset[str]:
    """Columns of the imported data that are model output: shown only where model output may be.

    With them those that say how likely people are asked about an item: they may follow a model's doubts.
    """
    columns = set(project.runs.exclude(p_column="").values_list("p_column", flat=True))
    columns |= answer_columns(project)
    for source in Source.objects.filter(project=project):
        try:
            columns |= backend_for(source).hidden_columns()
        except HypacError:
            continue  # a source that cannot be opened any more has no columns of ours
    return frozenset(columns)


def columns_hidden_now(project: Project) -> frozenset[str]:
    """What `hidden_columns` names, as long as nobody may see model output."""
    return frozenset() if output_is_open(project) else hidden_columns(project)
