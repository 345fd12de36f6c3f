"""Runs that pause and go on: on request, while their server is away, and when their worker has to end."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.jobs import context as job_context, jobs
from annotation.jobs.context import NOTIFY_AGAIN_SECONDS
from annotation.models import AuditEvent, Item, Job, User
from routing.jobs import queue_of_run
from routing.models import Prediction, Reservation, Run
from routing.runs.certify import analyse
from routing.runs.route import route
from routing.sources.backends import BackendError
from routing.sources.backends.base import Answered
from routing.sources.backends.recorded import Recorded
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: Any) -> None:
    monkeypatch.setattr(Recorded, "in_flight", 8)
    monkeypatch.setattr(job_context, "LOOK_SECONDS", 0.0)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def world() -> World:
    return make_world(60)


def job_of(world: World, kind: str = "prepare_run") -> Job:
    return world.project.jobs.get(kind=kind)


def work(world: World, kind: str = "prepare_run") -> Job:
    job = job_of(world, kind)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def acting(act: Any, *, after: int, flight: int = 4) -> Any:
    """A `predict` with `flight` calls under way that lets `act` happen after so many answers."""

    def predict(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        rest, given = iter(items), 0
        under_way: list[Item] = []
        while True:
            while len(under_way) < flight and (item := next(rest, None)) is not None:
                under_way.append(item)
            if not under_way:
                return
            done = under_way.pop(0)
            given += 1
            if given == after:
                act()
            yield [(done, self._answer(done))]

    return predict


def test_a_pause_stores_what_is_under_way_and_goes_on_where_it_stopped(world, monkeypatch) -> None:
    run = world.start(m=20)
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", acting(lambda: jobs.pause(job=job_of(world)), after=10))
        job = work(world)
    assert (job.state, job.pause_asked, job.claim_token) == (Job.State.PAUSED, False, "")
    # The tenth, and the three that were under way with it.
    assert Prediction.objects.count() == 13
    assert not Reservation.objects.exclude(state="settled", calls=0).exists()
    assert jobs.run(job.pk) is False, "nobody takes up a paused job"
    assert jobs.reconcile() == 0
    jobs.resume(job=job)
    job = work(world)
    assert (job.state, job.attempts) == (Job.State.DONE, 1)
    assert Prediction.objects.filter(source__position=1).count() == 60
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING


def test_the_band_of_a_model_can_be_paused_too(monkeypatch) -> None:
    world = make_world(200)
    run = world.analysed(m=80)
    route(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(
            Recorded, "predict", acting(lambda: jobs.pause(job=job_of(world, "route_run")), after=1, flight=1)
        )
        assert work(world, "route_run").state == Job.State.PAUSED
    jobs.resume(job=job_of(world, "route_run"))
    assert work(world, "route_run").state == Job.State.DONE


def test_a_job_that_waits_pauses_at_once(world) -> None:
    world.start(m=20)
    jobs.pause(job=job_of(world))
    assert work(world).state == Job.State.PAUSED
    with pytest.raises(ConflictError, match="waits or is under way"):
        jobs.pause(job=job_of(world))
    jobs.resume(job=job_of(world))
    with pytest.raises(ConflictError, match="Only paused work"):
        jobs.resume(job=job_of(world))


def test_a_pause_can_be_taken_back(world, monkeypatch) -> None:
    world.start(m=20)
    monkeypatch.setattr(job_context, "LOOK_SECONDS", 3600)

    def hesitate() -> None:
        jobs.pause(job=job_of(world))
        jobs.resume(job=job_of(world))

    monkeypatch.setattr(Recorded, "predict", acting(hesitate, after=10))
    assert work(world).state == Job.State.DONE


def test_a_worker_that_dies_while_it_pauses_leaves_a_paused_job(world, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def pause_and_die() -> None:
        jobs.pause(job=job_of(world))
        raise Killed

    world.start(m=20)
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", acting(pause_and_die, after=10))
        with pytest.raises(Killed):
            work(world)
    assert job_of(world).state == Job.State.RUNNING
    Job.objects.update(heartbeat_at=timezone.now().replace(year=2000))
    assert jobs.run(job_of(world).pk) is False
    assert jobs.reconcile() == 0
    assert job_of(world).state == Job.State.PAUSED
    jobs.resume(job=job_of(world))
    assert work(world).state == Job.State.DONE


def test_a_paused_job_can_be_cancelled_and_keeps_its_place(world) -> None:
    run = world.start(m=20)
    jobs.pause(job=job_of(world))
    with pytest.raises(ConflictError, match="already under way"):
        jobs.enqueue(
            project=world.project,
            kind_name="prepare_run",
            params={"run": run.pk},
            unique_key=f"prepare_run:{run.pk}",
        )
    assert jobs.cancel(job=job_of(world)) is True
    jobs.retry(job=job_of(world))
    assert work(world).state == Job.State.DONE


def test_what_cannot_stop_in_the_middle_cannot_be_paused(world) -> None:
    job = jobs.enqueue(project=world.project, kind_name="deliver_run", params={"run": 1})
    with pytest.raises(ConflictError, match="The delivery cannot be paused"):
        jobs.pause(job=job)


def test_a_worker_that_has_to_end_hands_the_job_on(world, monkeypatch) -> None:
    ends: list[bool] = []
    announced: list[Job] = []
    monkeypatch.setattr(job_context, "_worker_stops", [lambda: bool(ends)])
    world.start(m=20)
    monkeypatch.setattr(jobs, "notify_worker", announced.append)
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", acting(lambda: ends.append(True), after=10))
        job = work(world)
    assert (job.state, job.attempts, Prediction.objects.count()) == (Job.State.QUEUED, 0, 13)
    assert announced == [job], "at once, not after a while"
    ends.clear()
    assert work(world).state == Job.State.DONE


def away(*_: Any) -> None:
    raise BackendError("The server at models.example does not answer.", permanent=False)


class TestServerAway:
    def test_a_run_waits_longer_each_time_and_says_why(self, world, monkeypatch) -> None:
        world.start(m=20)
        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "predict", acting(away, after=1))
            for pause in (15, 60, 240):
                began = timezone.now()
                job = work(world)
                assert job.state == Job.State.QUEUED
                tries_again_at = job.heartbeat_at + timedelta(seconds=NOTIFY_AGAIN_SECONDS - pause)
                second = timedelta(seconds=1)
                assert began - second <= tries_again_at <= timezone.now() + second
            assert jobs.reconcile() == 0
            page = logged_in(world.manager).get(reverse("run", args=[world.project.slug, 1])).content.decode()
        assert "It tries again by itself in about 4 minutes." in page
        assert "models.example does not answer" in page
        job = work(world)
        assert (job.state, job.error) == (Job.State.DONE, "")

    def test_failures_between_which_something_was_answered_use_up_no_attempts(
        self, world, monkeypatch, settings
    ) -> None:
        settings.HYPAC_JOB_MAX_ATTEMPTS = 2
        world.start(m=20)
        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "predict", acting(away, after=5))
            for count in (4, 8, 12, 16):
                job = work(world)
                assert (job.state, job.attempts) == (Job.State.QUEUED, 1)
                assert Prediction.objects.count() == count
            patch.setattr(Recorded, "predict", acting(away, after=1))
            assert work(world).state == Job.State.FAILED

    def test_a_server_that_is_away_invalidates_no_run(self, monkeypatch) -> None:
        world = make_world(200)
        run = world.analysed(m=80)
        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "fingerprint", away)
            with pytest.raises(ConflictError, match=r"does not answer.*try again later"):
                route(run=run, user=world.manager)
            run.refresh_from_db()
            assert (run.state, run.invalid_reasons) == (Run.State.ANALYSED, [])
        route(run=run, user=world.manager)
        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "fingerprint", away)
            assert work(world, "route_run").state == Job.State.QUEUED
        run.refresh_from_db()
        assert run.invalid_reasons == []
        assert work(world, "route_run").state == Job.State.DONE

    def test_a_source_that_was_changed_does(self, monkeypatch) -> None:
        world = make_world(200)
        run = world.analysed(m=80)
        monkeypatch.setattr(Recorded, "fingerprint", lambda self: "other")
        with pytest.raises(ConflictError, match="was changed"):
            route(run=run, user=world.manager)
        run.refresh_from_db()
        assert "was changed" in run.broken_by[0]


class TestPages:
    def test_buttons(self, world) -> None:
        world.start(m=20)
        client, slug = logged_in(world.manager), world.project.slug
        job = job_of(world)
        for page in (reverse("job", args=[slug, job.pk]), reverse("run", args=[slug, 1])):
            assert reverse("job_pause", args=[slug, job.pk]) in client.get(page).content.decode()
        client.post(reverse("job_pause", args=[slug, job.pk]))
        assert job_of(world).state == Job.State.PAUSED
        for page in (
            reverse("job", args=[slug, job.pk]),
            reverse("run", args=[slug, 1]),
            reverse("overview", args=[slug]),
        ):
            assert reverse("job_resume", args=[slug, job.pk]) in client.get(page).content.decode()
        client.post(reverse("job_resume", args=[slug, job.pk]))
        assert work(world).state == Job.State.DONE

    def test_a_button_leads_back_to_the_page_that_it_was_on(self, world) -> None:
        world.start(m=20)
        client, slug = logged_in(world.manager), world.project.slug
        pause, page = reverse("job_pause", args=[slug, job_of(world).pk]), reverse("run", args=[slug, 1])
        assert f'name="next" value="{page}"' in client.get(page).content.decode()
        assert client.post(pause, {"next": page}).url == page
        own = reverse("job", args=[slug, job_of(world).pk])
        resume = reverse("job_resume", args=[slug, job_of(world).pk])
        for elsewhere in ("https://elsewhere.example/", "//elsewhere.example/", "javascript:0", "run", ""):
            assert client.post(resume, {"next": elsewhere}).url == own

    def test_a_server_away_is_told_on_every_page_and_tried_on_demand(self, world, monkeypatch) -> None:
        world.start(m=20)
        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "predict", acting(away, after=1))
            job = work(world)
        client, slug = logged_in(world.manager), world.project.slug
        now, overview = reverse("job_try_now", args=[slug, job.pk]), reverse("overview", args=[slug])
        for page in (overview, reverse("run", args=[slug, 1]), reverse("job", args=[slug, job.pk])):
            shown = client.get(page).content.decode()
            assert "models.example does not answer. It tries again by itself within a minute." in shown
            assert now in shown
        assert client.post(now, {"next": overview}).url == overview
        job = job_of(world)
        assert (job.state, job.error, job.attempts) == (Job.State.QUEUED, "", 0)
        assert now not in client.get(overview).content.decode()
        shown = client.post(now, follow=True).content.decode()
        assert "does not wait for another attempt" in shown
        assert work(world).state == Job.State.DONE


def test_through_the_api(world, monkeypatch) -> None:
    world.start(m=20)
    client, slug, job = logged_in(world.manager), world.project.slug, job_of(world)
    pause, resume = (reverse(name, args=[slug, job.pk]) for name in ("api_job_pause", "api_job_resume"))

    def ask(path: str) -> Any:
        return client.post(path, content_type="application/json")

    assert ask(resume).status_code == 409
    said: list[dict[str, Any]] = []
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", acting(lambda: said.append(ask(pause).json()), after=10))
        work(world)
    assert (said[0]["state"], said[0]["pause_asked"]) == ("running", True)
    shown = client.get(reverse("api_job", args=[slug, job.pk])).json()
    assert (shown["state"], shown["pause_asked"], shown["done"]) == ("paused", False, 13)
    assert ask(pause).status_code == 409
    assert ask(resume).json()["state"] == "queued"
    assert work(world).state == Job.State.DONE
    actions = AuditEvent.objects.filter(target=f"job:{job.pk}").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == ["job.paused", "job.resumed"]


def test_a_run_with_a_model_in_the_workers_process_is_for_workers_that_have_one(world) -> None:
    run = world.start(m=20)
    job = job_of(world)
    assert queue_of_run(job) == "default"
    run.run_sources.first().source.__class__.objects.filter(position=2).update(backend="vllm")
    assert queue_of_run(job) == "gpu"
    for kind in ("prepare_run", "analyse_run", "route_run"):
        assert jobs.kind(kind).queue_of(job) == "gpu"


def test_an_analysis_that_calls_a_dear_model_can_be_paused(monkeypatch) -> None:
    errors = (lambda u: 0.8 * u, lambda u: 0.1 * u)
    world = make_world(600, error=errors, costs=("0.01", "0.2"), human_cost="1")
    run = world.calibrated(rule="every_score", m=300, p=Decimal(1), pilot_size=30)
    analyse(run=run, user=world.manager)
    asked = Prediction.objects.filter(source__position=2)
    before = asked.count()
    with monkeypatch.context() as patch:
        pause = acting(lambda: jobs.pause(job=job_of(world, "analyse_run")), after=2)
        patch.setattr(Recorded, "predict", pause)
        job = work(world, "analyse_run")
    assert job.state == Job.State.PAUSED
    assert before < asked.count() < before + 10
    page = logged_in(world.manager).get(reverse("run", args=[world.project.slug, run.number]))
    assert reverse("job_resume", args=[world.project.slug, job.pk]) in page.content.decode()
    jobs.resume(job=job)
    assert work(world, "analyse_run").state == Job.State.DONE
    run.refresh_from_db()
    assert run.state == Run.State.ANALYSED
