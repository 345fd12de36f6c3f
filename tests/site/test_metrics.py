"""/metrics: for whoever shows the token, the same from every web process, and cheap at any size."""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from annotation.jobs import jobs, kinds
from annotation.labelling import queue
from annotation.models import Job, Mail, WorkItem
from hypac_site.metrics import models, work
from routing.models import Prediction, Spend
from testbed.factories import make_items, make_user
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.database, pytest.mark.costly]

TOKEN = "a-token-of-the-tests"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def watched(settings, db) -> None:
    settings.HYPAC_METRICS_TOKEN = TOKEN
    cache.clear()


def scrape() -> Samples:
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@pytest.fixture
def world() -> World:
    return make_world(60)


@pytest.fixture
def later(monkeypatch) -> Callable[[], None]:
    """To be called: from then on rows that were just written are old enough to be counted."""
    return lambda: monkeypatch.setattr(models, "MARGIN", timedelta(minutes=-5))


class TestWhoMayLook:
    @pytest.mark.parametrize(
        "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"]
    )
    def test_nobody_without_the_token(self, header: str) -> None:
        answer = Client().get("/metrics", headers={"Authorization": header} if header else {})
        assert answer.status_code == 401
        assert b"hypac_" not in answer.content
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_a_superuser_without_the_token(self) -> None:
        client = Client()
        client.force_login(make_user("root", is_superuser=True, is_staff=True))
        assert client.get("/metrics").status_code == 401

    def test_there_is_no_such_page_without_a_token_in_the_settings(self, settings) -> None:
        settings.HYPAC_METRICS_TOKEN = ""
        assert Client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


def test_requests_by_the_name_of_the_view() -> None:
    labels = {"view": "login", "method": "GET", "status": "2xx"}
    Client().get("/login/")
    before = value(scrape(), "hypac_http_request_seconds_count", **labels)
    Client().get("/login/")
    Client().get("/no/such/page/4711/")
    samples = scrape()
    assert value(samples, "hypac_http_request_seconds_count", **labels) == before + 1
    assert not [labels for _, labels in samples if "4711" in str(labels)], "an address is no label"


def test_jobs(project, monkeypatch) -> None:
    monkeypatch.setattr(kinds, "KINDS", dict(kinds.KINDS))
    jobs.register("think", lambda context: None, title="Think", queue="gpu")
    for _ in range(3):
        jobs.enqueue(project=project, kind_name="think", params={})
    first, second, third = Job.objects.order_by("pk")
    Job.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(hours=1))
    long_ago = timezone.now() - timedelta(minutes=10)
    Job.objects.filter(pk=second.pk).update(state="running", started_at=long_ago, heartbeat_at=long_ago)
    Job.objects.filter(pk=third.pk).update(started_at=long_ago, created_at=timezone.now() - timedelta(days=9))
    samples = scrape()
    assert value(samples, "hypac_jobs", kind="think", state="queued") == 2
    assert value(samples, "hypac_jobs", kind="think", state="running") == 1
    assert value(samples, "hypac_jobs_waiting", queue="gpu") == 2
    assert value(samples, "hypac_jobs_waiting", queue="default") == 0
    age = value(samples, "hypac_jobs_oldest_waiting_seconds", queue="gpu")
    assert 3600 <= age < 3700, "the third waits for another attempt, not for a worker"
    assert value(samples, "hypac_jobs_silent") == 1


def test_what_waits_for_people_and_who_holds_it(project, monkeypatch) -> None:
    items = make_items(project, [f"text {number}" for number in range(12)])
    batch = queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, entropy=7, priority=10
    )
    annotator = project.created_by
    assert queue.claim(project=project, user=annotator)
    samples = scrape()
    assert value(samples, "hypac_queue_waiting_items", project=project.slug) == 11
    assert value(samples, "hypac_queue_leases", state="active") == 1
    assert value(samples, "hypac_queue_annotators") == 1
    WorkItem.objects.filter(state="leased").update(lease_expires_at=timezone.now() - timedelta(hours=1))
    samples = scrape()
    assert value(samples, "hypac_queue_leases", state="active") == 0
    assert value(samples, "hypac_queue_leases", state="expired") == 1
    assert value(samples, "hypac_queue_annotators") == 0
    monkeypatch.setattr(work, "MOST_WAITING", 5)
    assert value(scrape(), "hypac_queue_waiting_items", project=project.slug) == 5, "counting stops there"
    queue.withdraw_batch(batch=batch)
    assert ("hypac_queue_waiting_items", frozenset({("project", project.slug)})) not in scrape()


class TestModels:
    def answers(self, samples: Samples) -> dict[str, float]:
        """By source, usable or not."""
        found: dict[str, float] = {}
        for (name, labels), n in samples.items():
            if name == "hypac_predictions_total":
                source = dict(labels)["source"]
                found[source] = found.get(source, 0) + n
        return found

    def test_predictions_are_counted_once_and_from_the_first_look_on(self, world: World, later) -> None:
        scrape()
        world.calibrated(m=30)
        assert self.answers(scrape()) == {}, "rows so new are left for later"
        later()
        for _ in range(2):  # the second look finds nothing new
            answers = self.answers(scrape())
            assert sum(answers.values()) == Prediction.objects.count() > 60
            assert all(re.fullmatch(r"\d+:Model [12]", source) for source in answers)

    def test_how_long_models_take(self, world: World, later) -> None:
        scrape()
        later()
        source = world.project.sources.first()
        Prediction.objects.bulk_create(
            Prediction(item=item, source=source, fingerprint="f", value="cat", cost=0, latency_ms=latency)
            for item, latency in zip(world.project.items.all()[:3], (40.0, 700.0, 90_000.0), strict=True)
        )
        samples, label = scrape(), f"{source.pk}:{source.name}"
        found = [
            value(samples, "hypac_model_call_seconds_bucket", source=label, le=limit)
            for limit in ("0.05", "0.5", "1.0", "60.0", "+Inf")
        ]
        assert found == [1, 1, 2, 2, 3]
        assert value(samples, "hypac_model_call_seconds_count", source=label) == 3
        assert value(samples, "hypac_model_call_seconds_sum", source=label) == pytest.approx(90.74)

    def test_what_was_there_before_is_not_read(self, world: World, later) -> None:
        world.calibrated(m=30)
        later()
        assert self.answers(scrape()) == {}

    def test_no_look_is_at_more_rows_than_a_limit(self, world: World, later, monkeypatch) -> None:
        scrape()
        world.calibrated(m=30)
        later()
        monkeypatch.setattr(models, "MOST_ROWS", 40)
        seen = [sum(self.answers(scrape()).values()) for _ in range(4)]
        assert seen[0] == 40
        assert seen[-1] == Prediction.objects.count()

    def test_money_is_exact_before_and_after_it_is_summed_up(self, world: World, later) -> None:
        world.calibrated(m=30)
        paid = {"models": Decimal(0), "people": Decimal(0)}
        for spend in Spend.objects.all():
            paid["people" if spend.source_id is None else "models"] += spend.amount
        assert paid["models"] > 0
        for _ in range(3):
            samples = scrape()
            for by, amount in paid.items():
                labels = {"project": world.project.slug, "currency": "USD", "by": by}
                found = samples.get(("hypac_spend", frozenset(labels.items())), 0.0)
                assert found == pytest.approx(float(amount))
            later()

    def test_the_number_of_queries_does_not_grow(self, world: World, later) -> None:
        scrape()
        world.calibrated(m=30)
        later()
        with CaptureQueriesContext(connection) as busy:
            scrape()
        assert len(busy) <= 20


def test_letters_that_wait_and_those_given_up_are_counted() -> None:
    now, fields = timezone.now(), {"kind": "invitation", "to": "ann@example.org"}
    for state in ("pending", "sending"):
        Mail.objects.create(**fields, state=state, next_attempt_at=now)
    for state in ("failed", "sent"):
        Mail.objects.create(**fields, state=state)
    Mail.objects.filter(state="pending").update(created_at=now - timedelta(hours=1))
    samples = scrape()
    assert value(samples, "hypac_mail_waiting") == 2
    assert value(samples, "hypac_mail_oldest_waiting_seconds") == pytest.approx(3600, abs=60)
    assert value(samples, "hypac_mail_given_up") == 1
    Mail.objects.all().delete()
    assert value(scrape(), "hypac_mail_oldest_waiting_seconds") == 0
