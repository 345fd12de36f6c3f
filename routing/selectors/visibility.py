"""Who may see model output: one rule for tables, pages and the API."""

from annotation.errors import HypacError
from annotation.models import Project
from annotation.permissions import Access
from routing.models import Certificate, Source
from routing.services.opened import open_source
from routing.services.states import OPEN


def may_see_model_output(project: Project, access: Access) -> bool:
    """Whether predictions, scores and routes may be shown to this person now.

    Not before a run has been analysed, not while another one is open, and never to people who label blind.
    """
    return access.allows("predictions.view") and output_is_open(project)


def output_is_open(project: Project) -> bool:
    if project.runs.filter(state__in=OPEN).exists():
        return False
    return Certificate.objects.filter(run__project=project).exists()


def columns_hidden_now(project: Project) -> frozenset[str]:
    """What `hidden_columns` names, as long as nobody may see model output."""
    return frozenset() if output_is_open(project) else hidden_columns(project)


def hidden_columns(project: Project) -> frozenset[str]:
    """Columns of the imported data that are model output: shown only where model output may be.

    With them those that say how likely people are asked about an item: they may follow a model's doubts.
    """
    columns = set(project.runs.exclude(p_column="").values_list("p_column", flat=True))
    for source in Source.objects.filter(project=project):
        try:
            columns |= open_source(source).hidden_columns()
        except HypacError:
            continue  # a source that cannot be opened any more has no columns of ours
    return frozenset(columns)
