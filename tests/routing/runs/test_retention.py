"""What is kept for a while alone goes in batches, and nothing that something under way needs."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from annotation import retention
from annotation.common import audit
from annotation.errors import JobFailedError
from annotation.labelling import queue
from annotation.maintenance import run_maintenance
from annotation.models import AuditEvent, Draft, Job
from hypac_site import environment
from routing.models import REMOVED, ItemScore, Prediction, Run, SourceTry
from routing.runs import raw_output
from routing.runs.score import ChosenScore, score_missing
from testbed.factories import make_items, make_project
from testbed.worlds import World, make_world
from tests.conftest import Stored

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture(scope="module")
def _prepared(stored: Stored) -> tuple[World, Run]:
    def make() -> tuple[World, Run]:
        world = make_world(100)
        return world, world.calibrating(m=40)

    return stored(make)


@pytest.fixture
def prepared(_prepared: tuple[World, Run], db: None) -> tuple[World, Run]:
    return deepcopy(_prepared)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """In the cache stands how far it is."""
    cache.clear()
    yield
    cache.clear()


def in_days(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """What was made a moment ago is so old."""
    now = timezone.now() + timedelta(days=days)
    monkeypatch.setattr(retention.timezone, "now", lambda: now)


def kept() -> int:
    return Prediction.objects.exclude(raw=REMOVED).count()


def test_raw_output_goes_once_nothing_under_way_needs_it(prepared, settings, monkeypatch) -> None:
    world, run = prepared
    all_of_them = kept()
    SourceTry.objects.create(
        job=Job.objects.create(project=world.project, kind="x"), source=world.project.sources.first()
    )
    in_days(monkeypatch, 31)
    retention.forget_old()  # not set: for ever
    settings.HYPAC_RETAIN_RAW_OUTPUT_DAYS = 30
    retention.forget_old()
    assert not SourceTry.objects.exists()
    assert kept() == all_of_them > 100  # the run is under way
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETE)
    retention.forget_old()  # goes on behind what it has looked at
    assert kept() == all_of_them
    begun, place = cache.get(raw_output.PLACE)
    # However many became old since, and were looked at: a day after it had begun it begins again.
    cache.clear()
    cache.set(raw_output.PLACE, (begun - raw_output.PLACE_SECONDS - 1, place))
    monkeypatch.setattr(retention, "AT_ONCE", 50)
    left = []
    for _ in range(2):
        retention.forget_old()
        left.append(all_of_them - kept())
    assert left == [50, 100]  # a batch each time
    while kept():
        retention.forget_old()
    scores = ItemScore.objects.count()
    assert scores
    assert Prediction.objects.filter(value__isnull=False).count() > 90
    # A run that would read it again is told why it cannot: such answers are not simply unusable.
    source = run.run_sources.order_by("position").first()
    with pytest.raises(JobFailedError, match="HYPAC_RETAIN_RAW_OUTPUT_DAYS"):
        score_missing(None, run_source=source, score=ChosenScore("label_probability"))
    score_missing(None, run_source=source, score=ChosenScore(run.score, run.score_params))  # has it already
    assert ItemScore.objects.count() == scores


def test_what_is_younger_stays(prepared, settings, monkeypatch) -> None:
    _world, run = prepared
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETE)
    settings.HYPAC_RETAIN_RAW_OUTPUT_DAYS = 30
    settings.HYPAC_RETAIN_DRAFTS_DAYS = settings.HYPAC_RETAIN_AUDIT_DAYS = 30
    in_days(monkeypatch, 29)
    before = kept(), AuditEvent.objects.count()
    retention.forget_old()
    assert (kept(), AuditEvent.objects.count()) == before
    assert cache.get(raw_output.PLACE) is None


def test_drafts_and_the_trail_go_but_for_what_checks_ask(db, settings, monkeypatch) -> None:
    project = make_project()
    items = make_items(project, 3)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    for item in items:
        Draft.objects.create(work_item=item.work_items.get(), user=project.created_by, value="cat")
    AuditEvent.objects.all().delete()
    for action in ("item.commented", *audit.KEPT, "item.flagged", "source.tried"):
        audit.record(project=project, actor=None, action=action)
    assert {"member.role_changed", "member.removed"} < set(audit.KEPT)
    settings.HYPAC_RETAIN_DRAFTS_DAYS = settings.HYPAC_RETAIN_AUDIT_DAYS = 7
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    in_days(monkeypatch, 8)
    run_maintenance()
    assert Draft.objects.count() == 1
    assert AuditEvent.objects.count() == len(audit.KEPT) + 1
    for _ in range(2):
        retention.forget_old()
    assert not Draft.objects.exists()
    assert set(AuditEvent.objects.values_list("action", flat=True)) == set(audit.KEPT)


@pytest.mark.parametrize(("given", "found"), [("", None), (" ", None), ("1", 1), ("365", 365)])
def test_days(given: str, found: int | None, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_RETAIN_AUDIT_DAYS", given)
    assert environment.days("HYPAC_RETAIN_AUDIT_DAYS") == found


@pytest.mark.parametrize("given", ["0", "-1", "a week", "1.5", "1000000"])
def test_no_number_of_days_is_refused_at_start(given: str, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_RETAIN_AUDIT_DAYS", given)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_RETAIN_AUDIT_DAYS"):
        environment.days("HYPAC_RETAIN_AUDIT_DAYS")
