"""A small project whose reference is an expert, with people who err."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from annotation.common.value_reader import Value
from annotation.models import Item, User, WorkBatch, WorkItem
from routing.delivery.deliver import deliver
from routing.models import Delivery, Run
from routing.runs.certify import analyse
from routing.runs.expert.ask import ask_expert
from routing.runs.route import route
from testbed.factories import make_items
from testbed.queue_answers import handed_out, submitted
from testbed.worlds import CHOICES, World, files_of, make_world


class ExpertWorld:
    """Three annotators who err, and an expert who does not.

    `error` is the annotators'; `errors` and whatever else is given, `make_world` takes, as `error` the first.
    Unless it is asked for, later models have no scores: with them models and the expert hardly need people.
    A ``world`` that is given takes the place of all that `make_world` would make.
    """

    def __init__(
        self,
        size: int = 240,
        *,
        error: float = 0.04,
        seed: int = 3,
        errors: Sequence[Callable[[float], float]] | None = None,
        own_scores: bool = False,
        world: World | None = None,
        **options: Any,
    ) -> None:
        if errors is not None:
            options["error"] = errors
        self.world = world or make_world(size, own_scores=own_scores, **options)
        self.expert, third = self.world.join(2)
        self.experts = [self.expert]
        self.world.annotators.append(third)
        self.draws = random.Random(seed)
        self.error = error

    def start(self, **fields: Any) -> Run:
        """A run whose calibration set waits for its annotators."""
        plan: dict[str, Any] = {
            "reference": "expert",
            "expert": self.expert.username,
            "p": None,
            "rule": "",
            "m": 120,
        }
        run = self.world.start(**(plan | fields))
        self.world.do("prepare_run")
        run.refresh_from_db()
        return run

    def more_experts(self, count: int) -> None:
        """As many beside the first one."""
        self.experts += self.world.join(count)

    def more_items(self, count: int) -> None:
        """As many new items, with what models and people would say of the first ones."""
        project, truth = self.world.project, self.world.truth
        old = list(project.items.order_by("position")[:count])
        new = make_items(project, [f"more {item.text}" for item in old])
        for item, like in zip(new, old, strict=True):
            item.data = like.data
            truth[item.external_id] = truth[like.external_id]
        Item.objects.bulk_update(new, ["data"])

    def answer(self, user: User, item: Item) -> Value:
        true = self.world.truth[item.external_id]
        if user in self.experts or self.draws.random() >= self.error:
            return true
        return self.draws.choice([name for name in CHOICES if name != true])

    def label(self, *users: User, limit: int | None = None) -> int:
        """Let people label what waits for them; returns how many labels that made."""
        count = 0
        for user in users:
            while tasks := handed_out(self.world.project, user, None if limit is None else limit - count):
                for task in tasks:
                    self.world.keys += 1
                    value = self.answer(user, task.item)
                    count += submitted(user, task, value, f"key-{self.world.keys}")
        return count

    def asked(self, run: Run) -> Run:
        """The same run once the expert's part of the calibration set waits for her. Past the queue, people
        label what is left of theirs.
        """
        self._fill(run.calibration_batch)
        self.world.step("ask", run, lambda: ask_expert(run=run, user=self.world.manager) and None)
        self.world.do("ask_expert")
        run.refresh_from_db()
        return run

    def _fill(self, batch: WorkBatch) -> None:
        def fill() -> list[object]:
            self._fill_now(batch)
            return [self.draws.getstate()]

        people = [user.pk for user in [*self.world.annotators, *self.experts]]
        told = [batch, people, self.world.truth, self.error, self.draws.getstate()]
        (state,) = self.world.step("fill", told, fill)
        self.draws.setstate(state)

    def _fill_now(self, batch: WorkBatch) -> None:
        users = {user.pk: user for user in [*self.world.annotators, *self.experts]}

        def answer(work_item: WorkItem) -> tuple[User, Value]:
            user = users[work_item.assigned_to_id]
            return user, self.answer(user, work_item.item)

        self.world.fill(batch, answer)

    def analysed(self, run: Run) -> Run:
        return self._analyse(self.asked(run))

    def _analyse(self, run: Run) -> Run:
        run.refresh_from_db()
        self._fill(run.expert_batch)
        self.world.step("analyse", run, lambda: analyse(run=run, user=self.world.manager) and None)
        self.world.do("analyse_run")
        run.refresh_from_db()
        return run

    def routed(self, run: Run) -> Run:
        return self.routed_from(self.asked(run))

    def routed_from(self, run: Run) -> Run:
        """From where the expert's part of the calibration set waits for her."""
        self._analyse(run)
        self.world.step("route", run, lambda: route(run=run, user=self.world.manager) and None)
        self.world.do("route_run")
        run.refresh_from_db()
        return run

    def finish(self, run: Run) -> Run:
        while self.label(*self.world.annotators, *self.experts):
            pass
        run.refresh_from_db()
        return run

    def delivered(self, run: Run) -> dict[str, bytes]:
        deliver(run=run, user=self.world.manager)
        self.world.do("deliver_run")
        return files_of(Delivery.objects.filter(run=run).order_by("-number")[0])
