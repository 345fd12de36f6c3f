"""A plan for which there are no items is refused with the reason why there are none."""

from decimal import Decimal

import pytest

from annotation.errors import InputError
from annotation.models import Project
from routing.runs.plan import outlook_of_plan
from routing.sources.manage import save_source
from testbed.factories import make_project
from testbed.worlds import make_world
from tests.annotation.imports.test_imported_labels import bring, choice, task
from tests.annotation.imports.test_imports import storage

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
BOTH = pytest.mark.parametrize("target", ["dataset", "population"])


@pytest.fixture
def project() -> Project:
    project = make_project(choices=["cat", "dog"])
    save_source(
        project=project,
        user=project.created_by,
        name="A",
        backend="uploaded",
        params={"model": "a"},
        cost_per_label=Decimal(1),
    )
    return project


def refusal(project: Project, target: str) -> InputError:
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 5, "p": Decimal(1)}
    with pytest.raises(InputError) as caught:
        outlook_of_plan(project=project, target=target, **plan)
    return caught.value


@BOTH
def test_nothing_was_imported(project, target) -> None:
    assert str(refusal(project, target)) == "m: There is no item yet: import data first."


@BOTH
def test_all_items_came_with_a_label(project, target) -> None:
    bring(project, [task(number, choice("cat", completed_by=1)) for number in (1, 2)])
    told = refusal(project, target)
    assert told.where == "m"
    assert told.message.startswith("Every item has a label already")


def test_what_was_left_out_by_people_elsewhere_is_not_laid_to_a_run(project) -> None:
    bring(project, [task(1, choice("cat", completed_by=1)), task(2)])
    told = refusal(project, "population")
    assert told.where == "target"
    assert told.message.startswith("Every item without a label came with an import that brought labels")
    assert "run" not in told.message.split(".")[0]


def test_runs_and_imports_are_both_named_where_both_are_the_reason() -> None:
    world = make_world(60)
    world.complete(m=20)
    told = refusal(world.project, "population")
    assert told.message.startswith("Earlier runs have drawn, used or routed every item without a label.")
    bring(world.project, [task(1001, choice("cat", completed_by=1)), task(1002)])
    assert "and the others came with an import" in refusal(world.project, "population").message
