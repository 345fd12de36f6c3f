"""Every kind of run goes out and comes in: what it certified is computed again there, and is the same."""

from pathlib import Path

import pytest

from annotation.labelling import queue
from annotation.models import Label, Project
from annotation.permissions import access_to
from annotation.projects.manage import update_project
from routing.items.erase import erase_items
from routing.label_set.replace import replace_label
from routing.models import Certificate, Source
from testbed.delivered import KINDS
from testbed.worlds import make_world
from tests.annotation.projects.portable import carried

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


# The others differ in nothing that is looked at here.
TRIED = (
    *("nothing", "several chains", "every score, population", "settled", "expert, by scores", "final audit"),
    *("later items", "second run", "a stranger's text", "learnt", "measured elsewhere"),
)


@pytest.mark.parametrize("kind", TRIED)
def test_it_comes_in(kind: str, tmp_path: Path) -> None:
    KINDS[kind]()
    project = Project.objects.latest("pk")
    copy = carried(project, tmp_path)
    both = [Certificate.objects.filter(run__project=one).order_by("run__number") for one in (project, copy)]
    first, second = (
        list(found.values("certified", "document", "figures", "messages", "shape", "thresholds"))
        for found in both
    )
    assert first == second
    assert [run.tally for run in copy.runs.all()] == [run.tally for run in project.runs.all()]


def test_what_a_project_may_change_after_a_run_keeps_nothing_out(tmp_path: Path) -> None:
    """Names of models and labels, the currency, a calibration label, the content of a drawn item."""
    world = make_world(120)
    run = world.complete(m=60)
    project, manager = world.project, world.manager
    Source.objects.filter(project=project, position=1).update(name="Another name")
    update_project(project=project, user=manager, currency="EUR")
    drawn = run.draw.items.filter(asked=True).order_by("order").values_list("item", flat=True)
    label = Label.objects.get(item=drawn[0], superseded_by__isnull=True)
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="again")
    erase_items(project=project, actor=manager, external_ids=[run.draw.items.get(order=1).item.external_id])
    access = access_to(manager, project.slug)
    assert access is not None
    replace_label(access=access, key="dog", into=["hound", "puppy"])
    copy = carried(project, tmp_path)
    assert copy.runs.get().certificate.sha256 == run.certificate.sha256
    assert copy.runs.get().invalid_reasons
