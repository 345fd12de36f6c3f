"""Taking an import back: all of what it brought and nothing else, as long as nothing rests on it."""

import pytest

from annotation.errors import ConflictError
from annotation.imports import job as import_job, undo as import_undo
from annotation.imports.columns import ColumnMapping
from annotation.imports.undo import start_undo, undo_objection
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import AuditEvent, Comment, Job, Project
from testbed.factories import make_project
from testbed.worlds import make_world
from tests.annotation.imports.test_imports import BY_TEXT, CSV, counts, import_file, result, storage, store

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.database]
RESTS = "A run, an answer, a label or a comment rests on some of these items, so that they stay."
MORE = "id,text,note\nd,fourth,x\na,first,y\ne,fifth,z\n"


@pytest.fixture
def project() -> Project:
    return make_project()


def undo(job: Job) -> Job:
    started = start_undo(job=job, user=job.project.created_by)
    jobs.run(started.pk)
    started.refresh_from_db()
    job.refresh_from_db()
    return started


def ids(project: Project) -> list[str]:
    return list(project.items.values_list("external_id", flat=True))


def test_what_it_brought_goes_and_the_rest_stays(project) -> None:
    first = import_file(project, store(project, CSV), BY_TEXT)
    second = import_file(project, store(project, MORE), BY_TEXT)
    done = undo(second)
    assert (done.state, done.done, done.total, done.result) == ("done", 2, 2, {"removed": 2})
    assert ids(project) == ["a", "b", "c"]
    project.refresh_from_db()
    assert project.columns == ["id", "text", "label"]
    assert second.result["removed"] is True
    assert AuditEvent.objects.filter(action="import.undone", target=f"job:{second.pk}").exists()
    assert counts(import_file(project, store(project, MORE), BY_TEXT)) == result(2, already_there=1)
    assert undo(first).state == "done"
    assert ids(project) == ["d", "e"]
    project.refresh_from_db()
    assert project.columns == ["id", "text", "label", "note"]  # the items that came later may have them


def test_it_is_done_once(project) -> None:
    """Places that became free belong to whatever comes next."""
    job = import_file(project, store(project, CSV), BY_TEXT)
    undo(job)
    import_file(project, store(project, MORE), BY_TEXT)
    with pytest.raises(ConflictError, match="no items that are still there"):
        undo(job)
    assert len(ids(project)) == 3


def test_by_chunks_and_on_after_a_worker_died(project, monkeypatch) -> None:
    monkeypatch.setattr(import_undo, "CHUNK", 2)
    content = "id,text\n" + "".join(f"{n},text {n}\n" for n in range(7))
    job = import_file(project, store(project, content), BY_TEXT)
    started = start_undo(job=job, user=project.created_by)

    class KilledError(BaseException):
        pass

    real = import_undo._remember
    calls = 0

    def dies(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        real(*arguments)
        if calls == 2:
            raise KilledError  # in the middle of a transaction

    with monkeypatch.context() as patch:
        patch.setattr(import_undo, "_remember", dies)
        with pytest.raises(KilledError):
            jobs.run(started.pk)
    assert ids(project) == list("01234")
    Job.objects.update(heartbeat_at="2020-01-01T00:00Z")
    assert jobs.run(started.pk)
    started.refresh_from_db()
    assert (started.done, ids(project)) == (7, [])


def test_an_import_that_was_stopped_can_begin_again(project, monkeypatch) -> None:
    monkeypatch.setattr(import_job, "CHUNK_ROWS", 2)
    job = start_import(
        project=project, user=project.created_by, stored_file=store(project, CSV), mapping=BY_TEXT
    )
    real = import_job._insert

    def stopped(*arguments: object) -> int:
        start = real(*arguments)
        jobs.cancel(job=job)
        return start

    with monkeypatch.context() as patch:
        patch.setattr(import_job, "_insert", stopped)
        jobs.run(job.pk)
    job.refresh_from_db()
    assert len(ids(project)) == 2
    undo(job)
    assert ids(project) == []
    jobs.retry(job=job)
    jobs.run(job.pk)
    assert ids(project) == ["a", "b", "c"]


class TestWhatStands:
    def refused(self, job: Job, words: str) -> None:
        before = job.project.items.count()
        with pytest.raises(ConflictError, match=words):
            start_undo(job=job, user=job.project.created_by)
        assert job.project.items.count() == before

    def test_an_item_that_waits_for_a_label(self, project) -> None:
        job = import_file(project, store(project, CSV), BY_TEXT)
        item = project.items.last()
        queue.create_batch(project=project, item_ids=[item.pk], blind=True, priority=1, entropy=1)
        self.refused(job, RESTS)

    def test_a_comment(self, project) -> None:
        job = import_file(project, store(project, CSV), BY_TEXT)
        Comment.objects.create(item=project.items.first(), author=project.created_by, text="odd")
        self.refused(job, RESTS)

    def test_a_run_and_its_predictions(self) -> None:
        project = make_world(0).project
        content = "id,text,model1,confidence1,model2,confidence2\n" + "".join(
            f"{n},text {n},cat,0.9,cat,0.9\n" for n in range(60)
        )
        job = import_file(project, store(project, content), BY_TEXT)
        assert undo_objection(job) == ""
        world = make_world(60)
        world.project, old = project, world.project
        del old
        world.manager = project.created_by
        world.start(m=30)
        assert undo_objection(job) == RESTS

    def test_it_does_not_tell_what_an_item_was_drawn_for(self) -> None:
        """Else whoever imports items one by one would read the calibration set off their pages."""
        world = make_world(60)
        run = world.start(m=30)
        world.do("prepare_run")
        run.refresh_from_db()
        places = set(world.project.items.values_list("position", flat=True))
        drawn = set(run.calibration_batch.work_items.values_list("item__position", flat=True))
        assert drawn
        assert places - drawn
        told = {
            undo_objection(
                Job(
                    project=world.project, kind="import", state="done", result={"positions": [[place, place]]}
                )
            )
            for place in places
        }
        assert told == {RESTS}

    def test_one_that_is_still_at_work(self, project) -> None:
        job = start_import(
            project=project, user=project.created_by, stored_file=store(project, CSV), mapping=BY_TEXT
        )
        self.refused(job, "has ended")

    def test_what_came_meanwhile_stops_it(self, project) -> None:
        job = import_file(project, store(project, CSV), BY_TEXT)
        started = start_undo(job=job, user=project.created_by)
        Comment.objects.create(item=project.items.first(), author=project.created_by, text="odd")
        jobs.run(started.pk)
        started.refresh_from_db()
        assert started.state == "failed"
        assert RESTS in started.error
        assert project.items.count() == 3

    def test_nothing_is_imported_meanwhile(self, project) -> None:
        job = import_file(project, store(project, CSV), BY_TEXT)
        start_undo(job=job, user=project.created_by)
        with pytest.raises(ConflictError, match="under way"):
            start_import(
                project=project,
                user=project.created_by,
                stored_file=store(project, MORE),
                mapping=ColumnMapping("id", "text"),
            )

    def test_no_run_is_started_meanwhile(self) -> None:
        """It would cover items that go."""
        world = make_world(60)
        columns = ",".join(f"{name}{n}" for n in (1, 2) for name in ("model", "confidence"))
        rows = "".join(f"new{n},text {n},cat,0.9,cat,0.9\n" for n in range(3))
        job = import_file(world.project, store(world.project, f"id,text,{columns}\n{rows}"), BY_TEXT)
        started = start_undo(job=job, user=world.manager)
        with pytest.raises(ConflictError, match="Import taken back is already under way"):
            world.start(m=30)
        assert not world.project.runs.exists()
        jobs.run(started.pk)
        assert world.start(m=30).pool_size == 60
