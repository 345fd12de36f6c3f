"""Models that answer as a stream: what is stored when, and what is refused."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from annotation.jobs import jobs
from annotation.models import Item, Job
from routing.models import ItemScore, Prediction, Reservation, Run, Spend
from routing.sources.backends import Answer, BackendError
from routing.sources.backends.base import Answered
from routing.sources.backends.recorded import Recorded
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
State = Reservation.State


@pytest.fixture
def world() -> World:
    return make_world(60)


def scripted(
    monkeypatch: Any, predict: Callable[[Recorded, Iterable[Item]], Iterator[list[Answered]]]
) -> None:
    monkeypatch.setattr(Recorded, "in_flight", 8)
    monkeypatch.setattr(Recorded, "predict", predict)


def prepare(world: World) -> Job:
    job = world.project.jobs.get(kind="prepare_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_a_group_is_stored_before_the_model_is_asked_for_more(world, monkeypatch) -> None:
    seen = []

    def one_by_one(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items, start=1):
            yield [(item, self._answer(item))]
            job = Job.objects.get(kind="prepare_run")
            seen.append((number, Prediction.objects.filter(source=first).count(), job.done))
            assert not connection.in_atomic_block or len(connection.savepoint_ids) == 0

    scripted(monkeypatch, one_by_one)
    run = world.start(m=20)
    first = run.run_sources.get(position=1).source_id
    assert prepare(world).state == Job.State.DONE
    assert seen[:60] == [(number, number, number) for number in range(1, 61)]
    assert Spend.objects.filter(run=run, stage="pool").count() == 60
    assert ItemScore.objects.count() == Prediction.objects.count()
    assert not Reservation.objects.exclude(state=State.SETTLED, calls=0, amount=0).exists()


def test_no_more_items_have_money_set_aside_than_may_be_under_way(world, monkeypatch) -> None:
    aside = []

    def lazy(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        taken: list[Item] = []
        for item in items:
            taken.append(item)
            aside.append(Reservation.objects.get(state=State.OPEN).calls)
            if len(taken) == self.in_flight:
                yield [(taken[0], self._answer(taken.pop(0)))]
        yield [(entry, self._answer(entry)) for entry in taken]

    scripted(monkeypatch, lazy)
    world.start(m=20)
    assert prepare(world).state == Job.State.DONE
    assert set(aside) <= set(range(1, 9))
    assert max(aside) == 8


def test_what_was_yielded_before_the_model_failed_is_stored(world, monkeypatch) -> None:
    def failing(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items):
            if number == 5:
                raise BackendError("The server is on fire.")
            yield [(item, self._answer(item))]

    scripted(monkeypatch, failing)
    world.start(m=20)
    job = prepare(world)
    assert (job.state, job.error, job.done) == (Job.State.FAILED, "The server is on fire.", 5)
    assert Prediction.objects.count() == 5
    assert Reservation.objects.get().state == State.SETTLED


@pytest.mark.parametrize("kind", ["twice", "foreign", "never asked for"])
def test_an_answer_that_was_not_asked_for_ends_the_job_in_words(world, monkeypatch, kind) -> None:
    def wrong(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        first = next(iter(items))
        yield [(first, self._answer(first))]
        other = {
            "twice": first,
            "foreign": make_world(5, seed=2).project.items.first(),
            "never asked for": world.project.items.order_by("-position").first(),
        }[kind]
        yield [(other, self._answer(first))]

    scripted(monkeypatch, wrong)
    world.start(m=20)
    job = prepare(world)
    assert job.state == Job.State.FAILED
    assert "was not asked for, or gave it twice" in job.error
    assert Prediction.objects.count() == 1


def test_items_without_an_answer_end_the_job_and_are_asked_for_again(world, monkeypatch) -> None:
    original = Recorded.predict
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", lambda self, items: original(self, list(items)[:-1]))
        world.start(m=20)
        job = prepare(world)
    assert job.state == Job.State.FAILED
    assert "no answer for 1 of the items" in job.error
    assert Prediction.objects.count() == 59
    jobs.retry(job=job)
    assert prepare(world).state == Job.State.DONE


def test_a_model_that_becomes_another_is_found_out_and_nothing_mixed_is_stored(world, monkeypatch) -> None:
    def changing(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items):
            other = replace(self._answer(item), served_model="new" if number >= 3 else "old")
            yield [(item, other)]

    scripted(monkeypatch, changing)
    run = world.start(m=20)
    job = prepare(world)
    assert job.state == Job.State.FAILED
    assert "'old', and now it answers as 'new'" in job.error
    assert set(Prediction.objects.values_list("served_model", flat=True)) == {"old"}
    run.refresh_from_db()
    assert not run.invalid_reasons
    # The next attempt remembers which model it was.
    jobs.retry(job=job)
    monkeypatch.setattr(Recorded, "predict", changing)
    with monkeypatch.context() as patch:
        answer = Recorded._answer
        patch.setattr(Recorded, "_answer", lambda self, item: replace(answer(self, item), served_model="new"))
        patch.setattr(Recorded, "predict", lambda self, items: ([(i, self._answer(i))] for i in items))
        assert "now it answers as 'new'" in prepare(world).error


def test_later_sources_are_asked_only_where_they_are_needed(monkeypatch) -> None:
    world = make_world(200)
    asked: dict[str, list[int]] = {}
    original = Recorded._answer

    def counting(self: Recorded, item: Item) -> Answer:
        asked.setdefault(self.columns["label_column"], []).append(item.pk)
        return original(self, item)

    monkeypatch.setattr(Recorded, "_answer", counting)
    run = world.calibrated(m=60, pilot_size=20)
    pilot = set(run.pilot_items.values_list("item", flat=True))
    drawn = set(run.draw.items.filter(asked=True).values_list("item", flat=True))
    assert len(asked["model1"]) == 200
    assert sorted(asked["model2"]) == sorted(pilot | drawn)
    from routing.runs.certify import analyse
    from routing.runs.route import route

    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    assert len(asked["model2"]) == len(pilot | drawn)
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    assert len(asked["model1"]) == 200
    assert len(asked["model2"]) == len(set(asked["model2"])), "nothing is asked for twice"
    band = set(asked["model2"]) - pilot - drawn
    labelled = set(Item.objects.filter(labels__isnull=False).values_list("pk", flat=True))
    own = set(run.routes.filter(position=2).values_list("item", flat=True))
    assert band == own - labelled - pilot
    assert run.run_sources.count() == 2
    assert Run.objects.count() == 1


def test_what_servers_send_can_be_stored(world, monkeypatch) -> None:
    odd: dict[str, Any] = {
        "text": "a\0b\ud800",
        "token_logprobs": [float("nan"), -0.5, float("-inf")],
        "samples": ["yes", None, {"k\0": 1}],
        "emoji": "\N{GRINNING FACE}",
    }

    def hostile(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for item in items:
            answer = replace(self._answer(item), tokens_in=-3, tokens_out=2**40, finish_reason="x\0" * 60)
            yield [(item, replace(answer, raw={**answer.raw, **odd}, served_model="m" * 500))]

    scripted(monkeypatch, hostile)
    world.start(m=20)
    assert prepare(world).state == Job.State.DONE
    row = Prediction.objects.first()
    assert row.raw["text"] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert row.raw["token_logprobs"] == [None, -0.5, None]
    assert row.raw["emoji"] == "\N{GRINNING FACE}"
    assert (row.tokens_in, row.tokens_out, len(row.finish_reason), len(row.served_model)) == (
        None,
        None,
        40,
        200,
    )


def test_busy_time_is_charged_where_it_is_known(monkeypatch) -> None:
    world = make_world(20)
    source = world.project.sources.get(position=1)
    source.cost_function, source.prices = "time", {"per_hour": "3600"}
    source.save()

    def timed(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items):
            answer = replace(self._answer(item), latency_ms=4_000.0, busy_ms=500.0 if number % 2 else None)
            yield [(item, answer)]

    scripted(monkeypatch, timed)
    run = world.start(m=10)
    assert prepare(world).state == Job.State.DONE
    costs = Prediction.objects.filter(source=source).order_by("item__position").values_list("cost", flat=True)
    assert list(costs[:4]) == [Decimal(4), Decimal("0.5"), Decimal(4), Decimal("0.5")]
    paid = sum(Spend.objects.filter(run=run, source=source).values_list("amount", flat=True))
    assert paid == sum(costs)
