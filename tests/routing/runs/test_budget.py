"""A budget of the models: never passed, reached cleanly, raised while they are at work."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import AuditEvent, Item, Job, User
from routing.models import Prediction, Reservation, Run, RunSource, Spend
from routing.runs import predict
from routing.runs.budget import set_budget
from routing.runs.cancel import cancel_run
from routing.runs.plan import outlook_of_plan
from routing.runs.spending import model_money
from routing.sources.backends import BackendError
from routing.sources.backends.base import Answered
from routing.sources.backends.recorded import Recorded
from routing.sources.charging import Charge
from testbed.factories import add_member
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
State = Reservation.State


@pytest.fixture(autouse=True)
def called(monkeypatch: Any) -> None:
    """The recorded answers stand for calls that are charged."""
    monkeypatch.setattr(Recorded, "never_lost", False)
    monkeypatch.setattr(Recorded, "in_flight", 8)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def world() -> World:
    """60 items; an answer of the first model costs 1, of the second 2."""
    return make_world(60)


@pytest.fixture
def tokens(world, monkeypatch) -> World:
    """The first model is charged 1 for each of 1 to 3 generated tokens, and 10 at the most."""
    source = world.project.sources.get(position=1)
    source.cost_function, source.prices = "tokens", {}
    source.save()
    monkeypatch.setattr(Recorded, "most_usage", lambda self, item: {"tokens_out": Decimal(10)})
    answer = Recorded._answer
    monkeypatch.setattr(
        Recorded, "_answer", lambda self, item: replace(answer(self, item), tokens_out=1 + item.position % 3)
    )
    return world


def job_of(world: World) -> Job:
    return world.project.jobs.get(kind="prepare_run")


def work(world: World) -> Job:
    job = job_of(world)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def spent(run: Run) -> Decimal:
    return Spend.objects.filter(run=run, source__isnull=False).aggregate(t=Sum("amount"))["t"] or Decimal(0)


def committed(run: Run) -> Decimal:
    aside = run.reservations.filter(state__in=(State.OPEN, State.LOST)).aggregate(t=Sum("amount"))["t"]
    return spent(run) + (aside or Decimal(0))


def test_a_run_stops_at_its_budget_and_goes_on_when_it_is_raised(world) -> None:
    run = world.start(m=20, budget=Decimal("37.5"))
    job = work(world)
    assert job.state == Job.State.FAILED
    assert "of 37.5 USD its models have spent 37 USD, and the next answer may cost up to 1 USD" in job.error
    assert "Raise the budget" in job.error
    assert (Prediction.objects.count(), spent(run), job.done) == (37, 37, 37)
    assert not Reservation.objects.exclude(calls=0).exists()
    set_budget(run=run, user=world.manager, budget=None)
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.QUEUED, "")
    assert work(world).state == Job.State.DONE
    assert Prediction.objects.values("item", "source").distinct().count() == Prediction.objects.count()


def test_what_answers_leave_over_of_what_was_set_aside_is_used(tokens) -> None:
    """The most is five times what an answer costs on average, and the budget is used up all the same."""
    run = tokens.start(m=20, budget=Decimal(60))
    job = work(tokens)
    assert job.state == Job.State.FAILED
    assert 50 < spent(run) <= 60
    assert spent(run) == sum(Prediction.objects.values_list("cost", flat=True))


def test_money_set_aside_and_spent_never_passes_the_budget(tokens, monkeypatch) -> None:
    seen: list[Decimal] = []

    def watched(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        taken: list[Item] = []
        for item in items:
            seen.append(committed(Run.objects.get()))
            taken.append(item)
            if len(taken) == 3:
                yield [(entry, self._answer(entry)) for entry in taken]
                taken = []
        yield [(entry, self._answer(entry)) for entry in taken]

    monkeypatch.setattr(Recorded, "predict", watched)
    tokens.start(m=20, budget=Decimal(75))
    work(tokens)
    assert len(seen) > 20
    assert max(seen) <= 75
    assert max(seen) > 65


def test_what_a_dead_worker_had_set_aside_counts_as_lost(world, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def killed(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items):
            if number == 5:
                raise Killed
            yield [(item, self._answer(item))]

    run = world.start(m=20, budget=Decimal(500))
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", killed)
        with pytest.raises(Killed):
            work(world)
    assert (spent(run), committed(run)) == (5, 13)
    Job.objects.update(heartbeat_at=timezone.now().replace(year=2000))
    assert work(world).state == Job.State.DONE
    money = model_money(run)
    assert (money.lost, money.lost_calls) == (8, 8)
    assert money.left == 500 - 8 - spent(run)
    assert Prediction.objects.filter(source__position=1).count() == 60
    # It is told where the run stops, too.
    with pytest.raises(InputError, match="8 USD set aside"):
        set_budget(run=run, user=None, budget=spent(run) + 7)
    set_budget(run=run, user=None, budget=spent(run) + 8)


def test_recorded_answers_lose_nothing(world, monkeypatch) -> None:
    monkeypatch.setattr(Recorded, "never_lost", True)
    run = world.start(m=20)
    source = run.run_sources.get(position=1).source
    Reservation.objects.create(
        run=run, source=source, stage="pool", claim_token="dead", calls=500, amount=Decimal(500)
    )
    assert work(world).state == Job.State.DONE
    assert model_money(run).lost == 0


def test_a_model_that_fails_gives_back_what_was_set_aside(world, monkeypatch) -> None:
    def failing(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        next(iter(items))
        raise BackendError("No weights.")
        yield

    run = world.start(m=20, budget=Decimal(10))
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", failing)
        work(world)
    assert committed(run) == 0


def test_calls_under_way_when_a_run_is_cancelled_are_lost(world, monkeypatch) -> None:
    run = world.start(m=20)

    def cancelling(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        first, second = next(iter(items)), next(iter(items))
        cancel_run(run=run, user=world.manager)
        yield [(first, self._answer(first)), (second, self._answer(second))]

    monkeypatch.setattr(Recorded, "predict", cancelling)
    assert work(world).state == Job.State.CANCELLED
    assert not Prediction.objects.exists()
    assert model_money(run).lost_calls > 0


def test_answers_that_the_database_did_not_take_are_lost(world, monkeypatch) -> None:
    def two(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        first, second, _third = (next(iter(items)) for _ in range(3))
        yield [(first, self._answer(first)), (second, self._answer(second))]

    def away(*_: Any) -> None:
        raise OperationalError("the connection is closed")

    run = world.start(m=20)
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", two)
        patch.setattr(predict, "store_scores", away)
        assert work(world).state == Job.State.QUEUED
    assert not Prediction.objects.exists()
    # The two that were answered, and the third that was under way.
    assert (model_money(run).lost_calls, model_money(run).lost) == (3, 3)
    assert work(world).state == Job.State.DONE
    assert spent(run) == sum(Prediction.objects.values_list("cost", flat=True))


def test_a_budget_can_be_lowered_under_a_model_at_work_but_not_below_what_is_committed(
    world, monkeypatch
) -> None:
    run = world.start(m=20)

    def lowering(self: Recorded, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for number, item in enumerate(items):
            if number == 10:
                with pytest.raises(InputError, match="have spent 10 USD and 8 USD set aside"):
                    set_budget(run=run, user=world.manager, budget=Decimal(17))
                set_budget(run=run, user=world.manager, budget=Decimal(20))
            yield [(item, self._answer(item))]

    monkeypatch.setattr(Recorded, "predict", lowering)
    assert work(world).state == Job.State.FAILED
    assert spent(run) == 20
    event = AuditEvent.objects.get(action="run.budget_changed")
    assert event.data == {"from": None, "to": "20"}


def test_people_are_no_part_of_it(world) -> None:
    run = world.start(m=20, budget=Decimal(1000))
    work(world)
    world.finish()
    assert Spend.objects.filter(run=run, source=None).exists()
    assert model_money(run).left == 1000 - spent(run)


@pytest.mark.parametrize("wrong", ["-1", "NaN", "1e14", "0.0000001"])
def test_what_is_no_budget_is_refused(world, wrong) -> None:
    with pytest.raises(InputError) as caught:
        world.start(m=20, budget=Decimal(wrong))
    assert caught.value.where == "budget"


def test_a_run_that_has_ended_keeps_its_budget(world) -> None:
    run = world.start(m=20, budget=Decimal(5))
    cancel_run(run=run, user=world.manager)
    with pytest.raises(ConflictError, match="cost nothing more"):
        set_budget(run=run, user=world.manager, budget=None)


def test_a_plan_says_where_its_models_are_expected_to_pass_the_budget(world) -> None:
    fields = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 20, "p": Decimal("0.9")}
    seen = outlook_of_plan(project=world.project, budget=Decimal(10), **fields)
    assert "more than the budget of 10 USD" in seen.warnings[-1]
    assert not outlook_of_plan(project=world.project, budget=Decimal(1000), **fields).warnings


@pytest.mark.parametrize(
    ("function", "prices", "usage", "most"),
    [
        ("flat", {}, {}, "0.5"),
        ("api_price", {"input": "1", "output": "2"}, {"tokens_in": 10**6, "tokens_out": 10**6}, "3"),
        # An answer that does not tell what it used is charged the price per label.
        ("api_price", {"input": "1", "output": "2"}, {"tokens_in": 10, "tokens_out": 10}, "0.5"),
        ("api_price", {"input": "1", "output": "2"}, {"tokens_in": 10}, None),
        # What is known beforehand is set aside, whatever the cost function says.
        ("flat", {}, {"cost": "0.25"}, "0.25"),
        ("api_price", {"input": "1", "output": "2"}, {"tokens_in": 10**6, "tokens_out": 0, "cost": "7"}, "7"),
        ("time", {"per_hour": "60"}, {"seconds": 120}, "2"),
        ("tokens", {}, {"tokens_out": 10**30}, "100000000"),
        (
            "api_price",
            {"input": "1", "output": "1", "per_tokens": "3"},
            {"tokens_in": 2, "tokens_out": 0},
            "0.6666666667",  # rounded up, never down
        ),
    ],
)
def test_the_most_that_an_answer_can_cost(function, prices, usage, most) -> None:
    charge = Charge(RunSource(cost_per_label=Decimal("0.5"), cost_function=function, prices=prices))
    found = charge.most({name: Decimal(value) for name, value in usage.items()})
    assert found == (None if most is None else Decimal(most))


def test_costs_that_are_known_beforehand_are_set_aside_to_the_cent(monkeypatch) -> None:
    """Recorded answers that cost 0.5 or 3, where the price per label, and so the plan, says 1."""
    costs = ("0.5", "3", "0.5")

    def priced(index: int, row: dict[str, str]) -> None:
        row["cost"] = costs[index % 3]

    world = make_world(60, change=priced)
    source = world.project.sources.get(position=1)
    source.params |= {"cost_column": "cost"}
    source.save()
    run = world.start(m=20, budget=Decimal(38))
    job = work(world)
    assert job.state == Job.State.FAILED
    assert "the next answer may cost up to 3 USD" in job.error
    # 9 times 0.5 + 3 + 0.5, and 0.5 more: with the next 3 it would be 39.5.
    assert spent(run) == Decimal("36.5")


def test_where_nobody_can_tell_the_most_the_mean_so_far_is_set_aside(world, monkeypatch) -> None:
    """Answers cost 5 where the price per label says 1: only those of the first group are a surprise."""
    source = world.project.sources.get(position=1)
    source.cost_function, source.prices = "time", {"per_hour": "3600"}
    source.save()
    monkeypatch.setattr(Recorded, "most_usage", lambda self, item: {})
    answer = Recorded._answer
    monkeypatch.setattr(Recorded, "_answer", lambda self, item: replace(answer(self, item), busy_ms=5000.0))
    run = world.start(m=20, budget=Decimal(61))
    job = work(world)
    assert job.state == Job.State.FAILED
    assert spent(run) == 60, "8 for 40, then 4 that fit"
    assert "the next answer may cost up to 5 USD" in job.error


class TestPages:
    def test_it_is_set_on_the_page_of_the_run(self, world) -> None:
        run = world.start(m=20, budget=Decimal(12))
        work(world)
        client = logged_in(world.manager)
        page = client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
        assert "is not enough for more" in page
        assert '<details class="more" id="budget" open>' in page
        url = reverse("run_budget", args=[world.project.slug, run.number])
        refused = client.post(url, {"budget": "3"})
        assert "have spent 12 USD" in refused.content.decode()
        assert client.post(url, {"budget": "1000"}).status_code == 302
        run.refresh_from_db()
        assert run.budget == 1000
        assert work(world).state == Job.State.DONE

    def test_it_is_given_with_the_plan(self, world) -> None:
        plan = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "60", "p": "0.9"}
        client = logged_in(world.manager)
        client.post(reverse("plan", args=[world.project.slug]), {**plan, "budget": "99.5", "anyway": "on"})
        assert Run.objects.get().budget == Decimal("99.5")

    def test_through_the_api(self, world) -> None:
        client = logged_in(world.manager)
        fields = {"epsilon": "0.1", "alpha": "0.1", "m": 20, "p": "0.9", "anyway": True, "budget": "15"}
        answer = client.post(
            reverse("api_runs", args=[world.project.slug]), fields, content_type="application/json"
        )
        assert answer.status_code == 201
        work(world)
        url = reverse("api_run_budget", args=[world.project.slug, 1])
        changed = client.put(url, {"budget": "20"}, content_type="application/json").json()
        assert changed == {
            "budget": "20.00",
            "spent": "15.00",
            "set_aside": "0.00",
            "lost": "0.00",
            "lost_calls": 0,
            "left": "5.00",
        }
        refused = client.put(url, {"budget": "1"}, content_type="application/json")
        assert (refused.status_code, refused.json()["field"]) == (400, "budget")
        run = client.get(reverse("api_run", args=[world.project.slug, 1])).json()
        assert run["models"]["left"] == "5.00"

    def test_a_viewer_sees_the_money_and_no_form(self, world) -> None:
        world.start(m=20, budget=Decimal(12))
        work(world)
        page = logged_in(add_member(world.project, "viewer")).get(
            reverse("run", args=[world.project.slug, 1])
        )
        assert "Money of the models" in page.content.decode()
        assert "Set the budget" not in page.content.decode()
