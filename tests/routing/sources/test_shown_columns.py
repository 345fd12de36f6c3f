"""What people see of an item is no model's answer: refused from both sides, import and source."""

from decimal import Decimal
from typing import Any

import pytest

from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping, shown_columns
from annotation.imports.upload import preview
from annotation.models import Project
from routing.models import Source
from routing.sources.manage import save_source
from testbed.factories import make_project
from testbed.worlds import make_world
from tests.annotation.imports.test_import_undo import undo
from tests.annotation.imports.test_imports import import_file, storage, store

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
ROWS = "id,question,answer,guess,sure\na,one,two,cat,0.9\nb,three,four,dog,0.8\n"


def recorded(project: Project, **params: Any) -> Source:
    return save_source(
        project=project,
        user=project.created_by,
        name="Model",
        backend="recorded",
        params=params,
        cost_per_label=Decimal(1),
    )


@pytest.mark.parametrize(
    ("mapping", "params", "where"),
    [
        (ColumnMapping("id", "guess"), {"label_column": "guess"}, "label_column"),
        (
            ColumnMapping("id", field_columns=("question", "sure")),
            {"label_column": "guess", "confidence_column": "sure"},
            "confidence_column",
        ),
    ],
)
def test_a_source_cannot_read_what_people_see(mapping, params, where) -> None:
    project = make_project()
    job = import_file(project, store(project, ROWS), mapping)
    project.refresh_from_db()
    assert shown_columns(project) == set(mapping.shown)
    with pytest.raises(InputError, match="People who label see the column") as raised:
        recorded(project, **params)
    assert raised.value.where == where
    assert not project.sources.exists()
    undo(job)
    import_file(project, store(project, ROWS), ColumnMapping("id", "question"))
    project.refresh_from_db()
    assert recorded(project, **params).pk


def test_people_cannot_see_what_a_source_reads() -> None:
    project = make_project()
    import_file(project, store(project, ROWS), ColumnMapping("id", "question"))
    project.refresh_from_db()
    recorded(project, label_column="guess", confidence_column="sure")
    more = store(project, ROWS + "c,five,six,cat,0.1\n", "more.csv")
    for columns in (("guess",), ("question", "sure")):
        with pytest.raises(InputError, match="A source of this project reads its answers"):
            import_file(project, more, ColumnMapping.showing(columns, id_column="id"))


def test_nor_after_the_analysis_when_answers_may_be_looked_at() -> None:
    world = make_world(60)
    world.analysed(m=30)
    stored = store(world.project, "id,text,model1\nx,new,cat\n")
    assert preview(stored_file=stored).details[2].model_output
    with pytest.raises(InputError, match="reads its answers from the column “model1”"):
        import_file(world.project, stored, ColumnMapping("id", "model1"))
