"""Every kind of run goes out and comes in: what it certified is computed again there, and is the same."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client

from annotation.labelling import queue
from annotation.models import Label, Project
from annotation.permissions import access_to
from annotation.projects.manage import update_project
from routing.delivery.deliver import deliver
from routing.items.erase import erase_items
from routing.label_set.replace import replace_label
from routing.models import Certificate, LedgerEntry, Source
from routing.runs.cancel import cancel_run
from routing.runs.ledger import spent_before
from testbed.delivered import KINDS
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world
from tests.annotation.projects.portable import carried, done
from tests.routing.by_people import people
from tests.routing.elsewhere import test_labelled_elsewhere as elsewhere
from tests.routing.runs import test_overlap

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


def test_a_draw_that_was_thrown_away_stays_charged(tmp_path: Path) -> None:
    world = make_world(120)
    thrown_away = world.start(m=60, draw_from="nonce")
    world.do("prepare_run")
    cancel_run(run=thrown_away, user=world.manager)
    world.analysed(m=60)
    copy = carried(world.project, tmp_path)
    assert spent_before(copy, "dataset") == Decimal("0.2")
    assert '"alpha_spent":"0.1"' in copy.runs.get(number=2).certificate.document


def test_nor_does_it_where_its_entry_is_left_out_of_the_file(tmp_path: Path) -> None:
    world = make_world(120)
    run = world.start(m=60, draw_from="nonce")
    world.do("prepare_run")
    cancel_run(run=run, user=world.manager)
    LedgerEntry.objects.filter(run=run).delete()
    assert spent_before(world.project, "dataset") == Decimal("0.1")
    assert spent_before(carried(world.project, tmp_path), "dataset") == Decimal("0.1")
    document = json.loads(world.analysed(m=60).certificate.document)
    assert [entry["run"] for entry in document["ledger"]] == [1, 2]


def test_a_run_of_several_people_comes_in(tmp_path: Path) -> None:
    world = test_overlap.make_crowd()
    test_overlap.analysed(world)
    copy = carried(world.project, tmp_path)
    assert copy.runs.get().certificate.figures["two_people"]["items"]


def test_a_run_by_people_comes_in(tmp_path: Path) -> None:
    project = make_project()
    make_items(project, 6)
    person = add_member(project)
    run = people.asked(project)
    people.answer(project, person)
    deliver(run=run, user=project.created_by)
    done(project, "deliver_run")
    copy = carried(project, tmp_path)
    assert copy.runs.get().deliveries.get().rows == 6


def test_labels_of_the_calibration_set_from_elsewhere_come_in(tmp_path: Path, client: Client) -> None:
    world = make_world(80)
    world.calibrating(m=30)
    world.way = None
    tasks = elsewhere.lines(elsewhere.out(client, world, part="calibration"))
    rows = [elsewhere.answered(task) for task in tasks]
    names = {"user 3": world.annotators[0].username}
    assert elsewhere.back(client, world, rows, people=names, part="calibration").status_code == 200
    world.analyse(world.project.runs.get())
    copy = carried(world.project, tmp_path)
    assert '"calibration_elsewhere":' in copy.runs.get().certificate.document
