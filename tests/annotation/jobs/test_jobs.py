"""Jobs: claimed once, fenced off, started again, failed in words."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from annotation.errors import ConflictError, HypacError, InputError, JobFailedError
from annotation.jobs import context as job_context, jobs, kinds
from annotation.jobs.context import JobContext
from annotation.models import Job, JobProblem, WebhookDelivery
from annotation.outside.webhooks.manage import create_webhook
from annotation.words import Words
from testbed.factories import make_project
from tests.annotation.jobs.jobs_at_work import silence, state

pytestmark = [pytest.mark.django_db, pytest.mark.database]


class TestEnqueue:
    def test_announced_only_when_committed(
        self, make_job, nudged, django_capture_on_commit_callbacks
    ) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            job = make_job()
            assert nudged == []
        assert nudged == [job.pk]

    def test_a_broker_that_is_down_is_no_failure(
        self, make_job, monkeypatch, django_capture_on_commit_callbacks
    ) -> None:
        def down(*_: Any, **__: Any) -> None:
            raise OSError("no broker")

        monkeypatch.setattr(jobs, "message_workers", down)
        with django_capture_on_commit_callbacks(execute=True):
            job = make_job()
        assert state(job) == Job.State.QUEUED

    def test_the_same_work_is_not_started_twice_until_it_has_ended(self, make_job) -> None:
        job = make_job(unique_key="k")
        with pytest.raises(ConflictError, match="Test is already under way"):
            make_job(unique_key="k", project=job.project)
        make_job(unique_key="other", project=job.project)
        make_job(unique_key="k")  # another project
        jobs.run(job.pk)
        make_job(unique_key="k", project=job.project)

    def test_an_unknown_kind(self, make_job) -> None:
        with pytest.raises(HypacError, match="no job of kind 'nonsense'"):
            jobs.enqueue(project=make_project(), kind_name="nonsense", params={})


class TestRun:
    def test_done_with_its_result(self, make_job) -> None:
        seen = []

        def handler(context: JobContext) -> dict[str, Any]:
            seen.append(context.params)
            with context.chunk(done=2, total=4, stage=Words("Half")):
                pass
            return {"n": 4}

        job = make_job(handler)
        assert jobs.run(job.pk) is True
        assert seen == [{"n": 3}]
        assert state(job) == Job.State.DONE
        assert (job.done, job.total, job.stage, job.result) == (2, 4, "Half", {"n": 4})
        assert job.finished_at >= job.started_at

    def test_every_message_delivered_twice_has_one_effect(self, make_job) -> None:
        runs = []

        def handler(context: JobContext) -> None:
            runs.append(jobs.run(context.job.pk))  # the second message comes while the first is at work

        job = make_job(handler)
        assert jobs.run(job.pk) is True
        assert jobs.run(job.pk) is False
        assert runs == [False]
        assert jobs.run(999_999) is False

    def test_a_permanent_failure_shows_its_reason(self, make_job) -> None:

        def handler(context: JobContext) -> None:
            raise InputError("this is no number", where="line 3")

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert state(job) == Job.State.FAILED
        assert job.error == "line 3: this is no number"
        assert jobs.run(job.pk) is False

    def test_a_bug_is_shown_as_a_failure(self, make_job) -> None:
        job = make_job(lambda context: 1 / 0)
        jobs.run(job.pk)
        assert state(job) == Job.State.FAILED
        assert job.error == "Unexpected error: ZeroDivisionError: division by zero"

    def test_a_transient_failure_is_tried_again_a_bounded_number_of_times(self, make_job, settings) -> None:
        settings.HYPAC_JOB_MAX_ATTEMPTS = 3

        def handler(context: JobContext) -> None:
            raise JobFailedError("the model does not answer", permanent=False)

        job = make_job(handler)
        for attempt in (1, 2):
            jobs.run(job.pk)
            assert (state(job), job.attempts) == (Job.State.QUEUED, attempt)
            assert job.error == "the model does not answer"
        jobs.run(job.pk)
        assert state(job) == Job.State.FAILED

    def test_a_database_that_fails_a_job_is_tried_again(self, make_job) -> None:
        def handler(context: JobContext) -> None:
            raise OperationalError("database is locked")

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert state(job) == Job.State.QUEUED
        assert "database is locked" in job.error

    def test_a_kind_of_a_newer_version_waits_for_a_worker_that_knows_it(
        self, make_job, monkeypatch, nudged
    ) -> None:
        job = make_job()
        with monkeypatch.context() as older:
            older.setattr(kinds, "KINDS", {})
            assert jobs.run(job.pk) is False
            assert (state(job), job.attempts) == (Job.State.QUEUED, 0)
            silence(job)
            assert jobs.reconcile() == 1
        assert nudged == [job.pk]
        assert jobs.run(job.pk) is True

    def test_a_kind_that_no_version_knows_fails_in_the_end(self, make_job, monkeypatch) -> None:
        job = make_job()
        monkeypatch.setattr(kinds, "KINDS", {})
        silence(job)
        Job.objects.update(created_at=timezone.now() - timedelta(days=2))
        assert jobs.reconcile() == 0
        assert state(job) == Job.State.FAILED
        assert "No worker knows work of kind 'test'" in job.error

    def test_and_says_so_once_whoever_else_saw_it_waiting(self, make_job, monkeypatch) -> None:
        project = make_project()
        job, seen, taken = (make_job(project=project) for _ in range(3))
        create_webhook(
            project=project, actor=project.created_by, url="https://e.org/x", events=["job.failed"]
        )
        Job.objects.filter(pk=taken.pk).update(state=Job.State.RUNNING)
        for stale in (job, seen, job, seen, taken):  # as they were when each reconciler looked
            jobs._unknown(stale)
        assert [state(each) for each in (job, seen, taken)] == [
            Job.State.FAILED,
            Job.State.FAILED,
            Job.State.RUNNING,
        ]
        assert WebhookDelivery.objects.count() == 2


class TestFence:
    def test_a_chunk_is_committed_whole_or_not_at_all(self, make_job) -> None:
        def handler(context: JobContext) -> None:
            with context.chunk(done=1):
                context.problems([("line 1", "kept")])
            with context.chunk(done=2):
                context.problems([("line 2", "lost")])
                raise JobFailedError("in the middle")

        job = make_job(handler)
        jobs.run(job.pk)
        assert state(job) == Job.State.FAILED
        assert job.done == 1
        assert [problem.where for problem in job.problems.all()] == ["line 1"]

    def test_a_worker_taken_for_dead_cannot_write_any_more(self, make_job) -> None:
        calls: list[str] = []

        def handler(context: JobContext) -> dict[str, str]:
            if not calls:
                calls.append("slow")
                silence(context.job)
                assert jobs.run(context.job.pk) is True  # another worker takes over and finishes
                with context.chunk(done=1):
                    context.problems([("line 1", "from a worker that is no longer asked")])
            calls.append("quick")
            return {"by": "the second"}

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert state(job) == Job.State.DONE
        assert (job.result, job.done, calls) == ({"by": "the second"}, 0, ["slow", "quick"])
        assert not JobProblem.objects.exists()

    def test_a_cancelled_job_stops_at_its_next_chunk(self, make_job) -> None:

        def handler(context: JobContext) -> None:
            with context.chunk(done=1):
                pass
            assert jobs.cancel(job=context.job) is True
            with context.chunk(done=2):
                pass

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert (state(job), job.done) == (Job.State.CANCELLED, 1)
        assert jobs.cancel(job=job) is False

    def test_the_heart_beats_while_a_chunk_takes_long(self, make_job, settings, monkeypatch) -> None:
        beats = []
        real = job_context.claimed_by
        monkeypatch.setattr(
            job_context, "claimed_by", lambda *arguments: beats.append(1) or real(*arguments).none()
        )
        settings.HYPAC_JOB_STALE_SECONDS = 0.01
        with job_context.keep_heartbeat(1, "t"):
            for _ in range(3000):
                if len(beats) >= 2:
                    break
                job_context.threading.Event().wait(0.02)
        stopped = len(beats)
        assert stopped >= 2
        job_context.threading.Event().wait(0.12)
        assert len(beats) == stopped

    def test_it_beats_while_a_broker_does_not_answer_who_looks_after_other_jobs(
        self, make_job, settings, monkeypatch
    ) -> None:
        beats = []
        real = job_context.claimed_by
        monkeypatch.setattr(
            job_context, "claimed_by", lambda *arguments: beats.append(1) or real(*arguments).none()
        )
        settings.HYPAC_JOB_STALE_SECONDS = 0.01
        answers = job_context.threading.Event()
        with job_context.keep_heartbeat(1, "t", also=answers.wait):
            for _ in range(3000):
                if len(beats) >= 3:
                    break
                job_context.threading.Event().wait(0.02)
            answers.set()
        assert len(beats) >= 3


class TestRetry:
    def test_goes_on_where_it_stopped(self, make_job) -> None:
        starts = []

        def handler(context: JobContext) -> None:
            starts.append(context.job.done)
            with context.chunk(done=5):
                pass
            if len(starts) == 1:
                raise JobFailedError("once")

        job = make_job(handler)
        jobs.run(job.pk)
        job.refresh_from_db()
        jobs.retry(job=job)
        assert (state(job), job.error, job.attempts) == (Job.State.QUEUED, "", 0)
        assert jobs.run(job.pk) is True
        assert starts == [0, 5]

    def test_only_what_has_failed_and_is_not_under_way_elsewhere(self, make_job) -> None:
        job = make_job(unique_key="k")
        with pytest.raises(ConflictError, match="failed or was cancelled"):
            jobs.retry(job=job)
        jobs.cancel(job=job)
        make_job(unique_key="k", project=job.project)
        with pytest.raises(ConflictError, match="another job"):
            jobs.retry(job=job)


class TestProblems:
    @pytest.fixture
    def context(self, make_job) -> JobContext:
        return JobContext(make_job(), "t")

    def test_the_same_place_twice_is_one_problem(self, context) -> None:
        context.problems([("line 1", "a")])
        context.problems([("line 1", "b")])
        context.problems([("line 1", "c"), ("line 2", "d")])
        assert list(JobProblem.objects.values_list("where", "message")) == [("line 1", "a"), ("line 2", "d")]

    def test_no_more_than_can_be_looked_at(self, context, monkeypatch) -> None:
        monkeypatch.setattr(job_context, "MAX_PROBLEMS", 2)
        context.problems([(f"line {number}", "x") for number in range(5)])
        context.problems([("line 9", "x")])
        context.problems([("line 10", "x")])
        assert JobProblem.objects.count() == 2
