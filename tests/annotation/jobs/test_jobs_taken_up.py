"""Jobs whose worker dies, falls silent or has to end: taken up by another one, or failed in words."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.jobs import context as job_context, jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, JobProblem
from tests.annotation.jobs.jobs_at_work import KilledError, silence, state

pytestmark = [pytest.mark.django_db, pytest.mark.database]


class TestReconcile:
    def test_announces_what_nobody_took(self, make_job, nudged) -> None:
        job = make_job()
        assert jobs.reconcile() == 0
        silence(job)
        assert jobs.reconcile() == 1
        assert nudged == [job.pk]
        assert jobs.reconcile() == 0  # not again at once

    def test_a_job_whose_worker_was_killed_is_started_again(self, make_job, nudged) -> None:
        starts: list[int] = []

        def handler(context: JobContext) -> None:
            starts.append(context.job.done)
            with context.chunk(done=len(starts)):
                pass
            if len(starts) < 3:
                raise KilledError

        job = make_job(handler)
        for _ in range(2):
            with pytest.raises(KilledError):
                jobs.run(job.pk)
            assert jobs.run(job.pk) is False  # its heartbeat is fresh: it may live
            silence(job)
            assert jobs.reconcile() == 1
        assert nudged == [job.pk, job.pk]
        assert jobs.run(job.pk) is True
        assert starts == [0, 1, 2]

    def test_a_job_that_kills_its_workers_fails_in_the_end(self, make_job, nudged, settings) -> None:
        settings.HYPAC_JOB_MAX_ATTEMPTS = 2

        def handler(context: JobContext) -> None:
            raise KilledError

        job = make_job(handler)
        for _ in range(2):
            with pytest.raises(KilledError):
                jobs.run(job.pk)
            silence(job)
        assert jobs.reconcile() == 0
        assert state(job) == Job.State.FAILED
        assert "died 2 times" in job.error
        assert jobs.run(job.pk) is False

    def test_a_long_job_outlives_any_number_of_workers_while_it_gets_on(self, make_job, settings) -> None:
        settings.HYPAC_JOB_MAX_ATTEMPTS = 2

        def handler(context: JobContext) -> None:
            with context.chunk(done=context.job.done + 1):
                pass
            if context.job.done < 9:
                raise KilledError

        job = make_job(handler)
        for _ in range(9):
            with pytest.raises(KilledError):
                jobs.run(job.pk)
            silence(job)
            jobs.reconcile()
        assert jobs.run(job.pk) is True
        assert (state(job), job.done) == (Job.State.DONE, 10)

    def test_what_is_said_but_not_stored_is_no_getting_on(self, make_job, settings) -> None:
        settings.HYPAC_JOB_MAX_ATTEMPTS = 3

        def handler(context: JobContext) -> None:
            context.progress(done=context.job.done + 1)
            raise KilledError

        job = make_job(handler)
        for _ in range(3):
            with pytest.raises(KilledError):
                jobs.run(job.pk)
            silence(job)
            jobs.reconcile()
        assert state(job) == Job.State.FAILED

    def test_a_job_without_a_worker_waits_in_the_queue(self, make_job) -> None:
        """So nobody who comes back to life has it, and it says that it waits."""

        def handler(context: JobContext) -> None:
            silence(context.job)
            assert jobs.reconcile() == 1
            assert state(context.job) == Job.State.QUEUED
            with context.chunk(done=1):
                context.problems([("line 1", "from the dead")])

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert (state(job), job.done) == (Job.State.QUEUED, 0)
        assert not JobProblem.objects.exists()

    def test_the_clock_of_a_host_means_nothing(self, make_job, monkeypatch) -> None:
        """Heartbeats are written and judged by the clock of the database."""
        seen = []

        def handler(context: JobContext) -> None:
            with monkeypatch.context() as other_host:
                for hours in (-5, 5):
                    wrong = timezone.now() + timedelta(hours=hours)
                    other_host.setattr(timezone, "now", lambda wrong=wrong: wrong)
                    with context.chunk(done=1):
                        pass
                    seen.append((jobs.reconcile(), jobs.run(context.job.pk)))
            context.job.refresh_from_db()
            seen.append(abs((timezone.now() - context.job.heartbeat_at).total_seconds()) < 60)

        assert jobs.run(make_job(handler).pk) is True
        assert seen == [(0, False), (0, False), True]


class TestWorkerEnds:
    @pytest.fixture
    def ends(self, monkeypatch) -> list[bool]:
        """Put something in, and the worker is to end."""
        told: list[bool] = []
        monkeypatch.setattr(job_context, "_worker_stops", [lambda: bool(told)])
        return told

    def test_a_job_stops_between_two_chunks_and_is_announced_at_once(self, make_job, nudged, ends) -> None:
        def handler(context: JobContext) -> None:
            if context.job.done == 0:
                with context.chunk(done=1):
                    ends.append(True)
            with context.chunk(done=2):
                pass

        job = make_job(handler)
        assert jobs.run(job.pk) is False
        assert (state(job), job.done, job.attempts, job.error) == (Job.State.QUEUED, 1, 0, "")
        assert nudged == [job.pk]
        assert jobs.run(job.pk) is False, "this worker takes nothing any more"
        ends.clear()
        assert jobs.run(job.pk) is True

    def test_what_a_long_chunk_has_made_is_stored(self, make_job, ends, settings) -> None:
        def handler(context: JobContext) -> None:
            with context.chunk(done=1):
                settings.HYPAC_JOB_STALE_SECONDS = 0  # from here on every chunk takes long
                ends.append(True)

        job = make_job(handler)
        assert jobs.run(job.pk) is True
        assert (state(job), job.done) == (Job.State.DONE, 1)

    def test_one_that_stops_itself_stores_what_is_under_way(self, make_job, ends) -> None:
        def handler(context: JobContext) -> None:
            ends.append(True)
            with context.chunk(done=1):
                pass

        job = make_job(handler, stops_itself=True)
        assert jobs.run(job.pk) is True
        assert (state(job), job.done) == (Job.State.DONE, 1)
