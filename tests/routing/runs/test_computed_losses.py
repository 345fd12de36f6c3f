"""What is asked, stored, kept and removed of losses that jobs compute."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.jobs import jobs
from annotation.maintenance import run_maintenance
from annotation.models import Job
from annotation.projects.lifecycle import archive_project
from routing.common import computed_losses
from routing.core.losses import LossUnavailableError
from routing.models import ComputedLoss, Run
from routing.runs import compute_losses, waiting_for_losses
from routing.runs.later.audit import check_for_drift, later_audit_state
from testbed.worlds import World, make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.slow_loss import PATH, SLOW, compute_all
from tests.routing.runs.test_slow_losses import later_run

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

WRITES = ("INSERT", "UPDATE", "DELETE", "SAVEPOINT")


@pytest.fixture(autouse=True)
def slow(settings: Any, monkeypatch: Any) -> None:
    settings.HYPAC_LOSSES = [PATH]
    monkeypatch.setattr("routing.runs.later.plan.counts_errors", lambda loss: True)
    SLOW.pairs.clear()


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements within it, once it has ended."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as queries:
        yield found
    found += [query["sql"] for query in queries]


@pytest.fixture
def world() -> World:
    world = make_world(120)
    world.routed(m=60, loss=PATH)
    return world


def pairs_of(count: int) -> list[tuple[str, str]]:
    return [(f"label {number} of {count}", "answer") for number in range(count)]


class TestQueries:
    def test_one_query_finds_many_pairs_and_nothing_is_written_again(self, world: World) -> None:
        run = world.project.runs.get()
        first, again = [], []
        for count in (5, 50):
            with counted() as queries:
                found = computed_losses.known_losses(run, pairs_of(count))
            assert all(isinstance(loss, LossUnavailableError) for loss in found)
            first.append(len(queries))
            with counted() as queries:
                computed_losses.known_losses(run, pairs_of(count))
            assert not [sql for sql in queries if sql.startswith(WRITES) or "FOR UPDATE" in sql]
            again.append(len(queries))
        assert first[1] <= first[0] <= 10
        assert again[0] == again[1] <= 3

    def test_a_label_asks_as_much_however_many_wait(self) -> None:
        world, run = later_run()
        counts = []
        for labels in (5, None):
            world.label(limit=labels)
            with counted() as queries:
                check_for_drift(run)  # as each label of the audit has it
            counts.append(sum("computedloss" in sql or "annotation_job" in sql for sql in queries))
        assert ComputedLoss.objects.filter(computed_at=None).exists()
        assert max(counts) <= 2

    def test_a_page_writes_nothing_where_all_is_wanted(
        self,
        world: World,
        client_of: Callable[..., Any],  # noqa: F811
    ) -> None:
        client = client_of(world.manager)
        page = reverse("progress", args=[world.project.slug])
        client.get(page)
        assert ComputedLoss.objects.filter(computed_at=None).exists()
        with counted() as queries:
            client.get(page)
        assert not [sql for sql in queries if "computedloss" in sql and sql.startswith(WRITES)]
        assert not [sql for sql in queries if "annotation_job" in sql and "FOR UPDATE" in sql]


class TestReading:
    def test_texts_are_read_in_parts_that_are_not_too_long(self, world: World, monkeypatch: Any) -> None:
        monkeypatch.setattr(compute_losses, "SIGNS", 200)
        run = world.project.runs.get()
        compute_all(world.project)
        long = [("short", "s"), ("l" * 500, "long"), *pairs_of(30)]
        computed_losses.known_losses(run, long)
        wanted = world.project.computed_losses.filter(computed_at=None)
        parts = list(compute_losses._wanted(wanted))
        assert sorted(row.pk for part in parts for row in part) == sorted(wanted.values_list("pk", flat=True))
        for part in parts:
            assert len(part) == 1 or sum(len(row.label) + len(row.answer) for row in part) <= 200
        assert 1 < len(parts) < len(long)
        compute_all(world.project)
        assert computed_losses.known_losses(run, long) == [1.0] * len(long)
        assert not ComputedLoss.objects.exclude(label="", answer="").exists()


class TestRemoving:
    def test_what_is_old_goes_and_what_is_asked_about_stays(self, world: World) -> None:
        run = world.project.runs.get()
        computed_losses.known_losses(run, pairs_of(3))
        compute_all(world.project)
        computed_losses.known_losses(run, pairs_of(4))
        now = timezone.now()
        rows = world.project.computed_losses
        assert not computed_losses.forget_losses(most=100)
        wanted, old = rows.filter(computed_at=None).count(), rows.exclude(computed_at=None)
        assert wanted == 4
        rows.filter(computed_at=None).update(asked_at=now - computed_losses.UNASKED * 2)
        computed_losses.known_losses(run, pairs_of(4)[:1])  # somebody has looked again
        old.update(computed_at=now - computed_losses.KEPT - timedelta(hours=1))
        assert computed_losses.forget_losses(most=2)
        while computed_losses.forget_losses(most=2):
            pass
        assert list(rows.values_list("label", flat=True)) == ["label 0 of 4"]
        assert isinstance(computed_losses.known_losses(run, pairs_of(3))[0], LossUnavailableError)
        compute_all(world.project)
        assert computed_losses.known_losses(run, pairs_of(3)) == [1.0] * 3


class TestArchiving:
    def test_a_job_that_a_page_began_does_not_hinder_it(self, world: World) -> None:
        computed_losses.known_losses(world.project.runs.get(), pairs_of(1))
        job = world.project.jobs.get(kind="compute_losses")
        assert job.state == Job.State.QUEUED
        archive_project(project=world.project, actor=world.manager)
        job.refresh_from_db()
        assert job.state == Job.State.CANCELLED


class TestGoingOn:
    def waiting(self) -> tuple[World, Run]:
        """A run whose last label is stored, and whose losses nobody computes any more."""
        world, run = later_run(20)
        world.label()
        run.refresh_from_db()
        assert run.state == Run.State.LABELLING
        cache.clear()
        return world, run

    def test_a_run_completes_after_its_job_has_failed(self) -> None:
        world, run = self.waiting()
        kind = world.project.jobs.filter(kind="compute_losses")
        kind.update(state=Job.State.FAILED, finished_at=timezone.now())
        world.project.computed_losses.all().delete()
        run_maintenance()
        assert kind.count() == 1  # it has failed just now
        kind.update(finished_at=timezone.now() - 2 * waiting_for_losses.RETRY)
        cache.clear()
        run_maintenance()
        assert kind.count() == 2
        cache.clear()
        run_maintenance()
        assert kind.count() == 2  # it is under way
        compute_all(world.project)
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        assert later_audit_state(run).audited == 20
        kind.update(finished_at=timezone.now() - 2 * waiting_for_losses.RETRY)
        cache.clear()
        before = kind.count()
        run_maintenance()
        assert kind.count() == before

    def test_a_job_in_an_archived_project_changes_no_run(self) -> None:
        world, run = self.waiting()
        job = world.project.jobs.get(kind="compute_losses")
        world.project.archived_at = timezone.now()
        world.project.save(update_fields=["archived_at"])
        assert jobs.run(job.pk)
        run.refresh_from_db()
        assert run.state == Run.State.LABELLING
        assert not world.project.computed_losses.filter(computed_at=None).exists()
