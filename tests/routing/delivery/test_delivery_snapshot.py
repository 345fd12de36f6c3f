"""A delivery shows the project as it stood at one moment, while people go on; and it ends where it has to."""

import threading

import pytest
from django.db import connection, transaction

from annotation.common.snapshot import in_snapshot
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import Job, Label, StoredFile
from routing.delivery.deliver import deliver
from routing.labels import all_items
from routing.labels.all_items import delivery_of
from routing.models import Delivery, Run
from testbed.worlds import World, make_world, rows_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(all_items, "READ", 10)
    monkeypatch.setattr(all_items, "PAGE", 10)


def finish(world: World) -> None:
    with transaction.atomic():
        world.finish()


def complete(world: World) -> Run:
    run = world.routed(m=30)
    finish(world)
    run.refresh_from_db()
    return run


def test_what_happens_while_it_is_read_is_not_in_it():
    world = make_world(100)
    run = world.routed(m=40)
    before = rows_of(run)
    waiting = [row.external_id for row in before if row.label is None]
    assert waiting
    found = []
    with delivery_of(run) as (then, _, pages):
        found.append(next(pages))
        # People label, correct and write meanwhile; nobody waits for the reader.
        finish(world)
        label = Label.objects.filter(work_item__batch=run.calibration_batch).order_by("-item")[0]
        other = next(key for key in ("cat", "dog") if key != label.value)
        queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
        found += pages
    run.refresh_from_db()
    assert (then.invalid_reasons, run.invalid_reasons == []) == ([], False)
    assert [row for page in found for row in page.rows()] == before
    assert rows_of(run) != before


def test_inside_a_transaction_its_own_changes_are_seen():
    world = make_world(60)
    run = world.routed(m=30)
    with transaction.atomic():
        world.finish()
        assert all(row.label is not None for row in rows_of(run))
        transaction.set_rollback(True)
    assert any(row.label is None for row in rows_of(run))


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "snapshot-reader"]


def test_a_reader_ends_with_whoever_wanted_it():
    world = make_world(60)
    run = complete(world)

    def breaks_off() -> None:
        with delivery_of(run) as (_, _, pages):
            next(pages)
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        breaks_off()
    assert readers() == []


def test_what_fails_in_the_reader_fails_where_its_pages_are_wanted():
    def breaks():
        yield 1
        raise RuntimeError("lost")

    with in_snapshot(breaks) as things:
        assert next(things) == 1
        with pytest.raises(RuntimeError, match="lost"):
            next(things)
    assert readers() == []


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no such transaction")
def test_the_reader_cannot_write():
    def kind():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('transaction_read_only')")
            yield cursor.fetchone()[0]

    with in_snapshot(kind) as things:
        assert next(things) == "on"


def test_a_cancelled_delivery_stops_at_the_next_page_and_leaves_nothing(monkeypatch):
    world = make_world(100)
    run = complete(world)
    job = deliver(run=run, user=world.manager)
    files = StoredFile.objects.count()
    seen = []
    progress = JobContext.progress

    def cancelled_meanwhile(self, *, done=None, **others):
        progress(self, done=done, **others)
        seen.append(done)
        if len(seen) == 3:
            jobs.cancel(job=job)

    monkeypatch.setattr(JobContext, "progress", cancelled_meanwhile)
    assert not jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.done, seen) == (Job.State.CANCELLED, 30, [10, 20, 30])
    assert not Delivery.objects.exists()
    assert StoredFile.objects.count() == files
    assert readers() == []
    monkeypatch.undo()
    jobs.retry(job=job)
    assert jobs.run(job.pk)
    assert Delivery.objects.get().rows == 100
