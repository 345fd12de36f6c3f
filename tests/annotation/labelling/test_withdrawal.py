"""Batches too large to be withdrawn in a request: nobody is asked from that moment, a job does the rest."""

from decimal import Decimal

import pytest
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.labelling import batches, queue
from annotation.labelling.queries import waiting_for
from annotation.models import Job, WorkItem
from annotation.projects.queries import project_cards, projects_of, work_waits
from routing.common.states import State
from routing.models import Run
from routing.runs.cancel import cancel_run
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
OPEN, WITHDRAWN = WorkItem.State.OPEN, WorkItem.State.WITHDRAWN


@pytest.fixture
def world(monkeypatch) -> World:
    monkeypatch.setattr(batches, "AT_ONCE", 5)
    world = make_world(60)
    world.start(m=40)
    world.do("prepare_run")
    return world


def cancel(world: World) -> Run:
    run = world.project.runs.get()
    cancel_run(run=run, user=world.manager)
    run.refresh_from_db()
    return run


def work(world: World, state: str) -> int:
    return WorkItem.objects.filter(batch__project=world.project, state=state).count()


def test_nobody_is_asked_while_the_work_items_are_still_open(world) -> None:
    annotator = world.annotators[0]
    held = queue.claim(project=world.project, user=annotator)
    assert waiting_for(world.project, annotator) > 5
    run = cancel(world)
    assert run.state == State.CANCELLED
    assert work(world, OPEN) > 5
    assert queue.claim(project=world.project, user=annotator) is None
    assert queue.claim_ahead(project=world.project, user=annotator) == []
    assert waiting_for(world.project, annotator) == 0
    assert not work_waits(annotator)
    assert [card.waiting for card in project_cards(list(projects_of(annotator)), annotator)] == [0]
    assert queue.batch_progress(run.calibration_batch).open == 0
    with pytest.raises(ConflictError, match="no longer asked for"):
        queue.submit(
            user=annotator,
            work_item_id=held.work_item.pk,
            token=held.token,
            value="cat",
            idempotency_key="late",
        )


def test_what_somebody_skipped_does_not_come_back_nor_wait_for_a_decision(world) -> None:
    annotator = world.annotators[0]
    for person in [member.user for member in world.project.memberships.all()]:
        while (task := queue.claim(project=world.project, user=person)) is not None:
            queue.skip(user=person, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    assert queue.stuck_items(world.project).exists()
    cancel(world)
    assert not queue.stuck_items(world.project).exists()
    with pytest.raises(ConflictError, match="gone to somebody else"):
        queue.undo(project=world.project, user=annotator)
    assert work(world, WorkItem.State.LEASED) == 0


def test_what_was_taken_at_the_last_moment_keeps_no_item_from_the_next_run(world) -> None:
    """By somebody who had begun to take it before the run was cancelled, with the job stopped beside."""
    run = cancel(world)
    jobs.cancel(job=world.project.jobs.get(kind=batches.KIND))
    taken = WorkItem.objects.filter(batch=run.calibration_batch, state=OPEN)[:20]
    for number, one in enumerate(taken):
        WorkItem.objects.filter(pk=one.pk).update(
            state=WorkItem.State.LEASED,
            leased_to=world.annotators[0],
            lease_token=f"late-{number}",
            lease_expires_at=timezone.now(),
        )
    world.start(m=60, p=Decimal("0.99"))
    world.do("prepare_run")
    second = world.project.runs.order_by("-number")[0]
    asked = set(WorkItem.objects.filter(batch=second.calibration_batch).values_list("item", flat=True))
    assert asked & {one.item_id for one in taken}
    world.label()
    assert queue.batch_progress(second.calibration_batch).finished


def test_a_job_withdraws_the_rest_and_goes_on_where_it_was_stopped(world, monkeypatch) -> None:
    monkeypatch.setattr(batches, "WITHDRAWN_AT_ONCE", 4)
    world.label(limit=3)
    cancel(world)
    before = work(world, OPEN)
    job = world.project.jobs.get(kind=batches.KIND)
    withdraw, calls = batches.withdraw_some, []

    def breaking(batch, work_items):
        calls.append(work_items)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return withdraw(batch, work_items)

    monkeypatch.setattr(batches, "withdraw_some", breaking)
    with pytest.raises(KeyboardInterrupt):
        jobs.run(job.pk)
    assert work(world, OPEN) == before - 8
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    world.do(batches.KIND)
    assert work(world, OPEN) == 0
    assert work(world, WITHDRAWN) == before
    assert work(world, WorkItem.State.DONE) == 3


def test_few_are_withdrawn_in_the_request(world, monkeypatch) -> None:
    monkeypatch.setattr(batches, "AT_ONCE", 100)
    cancel(world)
    assert work(world, OPEN) == 0
    assert not world.project.jobs.filter(kind=batches.KIND).exists()


def test_another_run_can_start_meanwhile(world) -> None:
    cancel(world)
    world.start(m=20)
    world.do("prepare_run")
    assert queue.claim(project=world.project, user=world.annotators[0]) is not None
    world.do(batches.KIND)
    second = world.project.runs.order_by("number").last()
    assert queue.batch_progress(second.calibration_batch).total > 5
    assert world.project.runs.filter(state=State.CANCELLED).count() == 1
