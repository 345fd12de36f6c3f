"""kill -9 of the worker at every point of the way of a job: before, in and after calls and commits."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

from django.db import transaction
from faults_site import Model, key_of
from faults_world import CONCURRENCY, Row, World, check

from annotation.models import Job
from routing.models import Prediction
from testbed.hosts import until

if TYPE_CHECKING:
    from faults import Bench

VICTIMS = ("child", "parent", "both")


@dataclass
class Calls:
    """The calls of one world: which were repeated, and whether they were under way at a kill."""

    models: list[Model]
    world: World
    _calls: list[Counter[int]] = field(default_factory=list)
    _pending: list[set[int]] = field(default_factory=list)
    _row: Row | None = None

    def fault(self, row: Row | None) -> None:
        """A fault of this row happens now. What is asked twice from here to the next one was its doing."""
        calls = [self._of(model) for model in self.models]
        if self._row is not None:
            for before, now, pending in zip(self._calls, calls, self._pending, strict=True):
                again = Counter({n: now[n] - before[n] for n in before if now[n] > before[n]})
                self._row.extra += again.total()
                self._row.unexplained += sum(
                    times - (n in pending) for n, times in again.items()
                )  # each of the calls under way may be made once more
        self._row, self._calls = row, calls
        self._pending = [
            set(now) - self._committed(model) for model, now in zip(self.models, calls, strict=True)
        ]
        if row is not None:
            row.in_flight += sum(map(len, self._pending))

    def total(self) -> int:
        return sum(self._of(model).total() for model in self.models)

    def _of(self, model: Model) -> Counter[int]:
        first = self.world.first
        return Counter({n: k for n, k in model.calls.copy().items() if first <= n < first + 7000})

    def _committed(self, model: Model) -> set[int]:
        made = Prediction.objects.filter(source__project=self.world.project, source__name=model.name)
        return {int(name[1:]) for name in made.values_list("item__external_id", flat=True)}


@dataclass(frozen=True)
class Trap:
    """`arm` before the job gets there, `reached` once it waits there, `free` after the kill."""

    name: str
    arm: Callable[[], None]
    reached: Callable[[], bool]
    free: Callable[[], None]


def traps(bench: "Bench", world: World) -> dict[str, list[Trap]]:
    """Where each job is killed, in the order in which it comes by."""
    fast, slow = bench.models

    def gate(name: str, table: str, *, at_commit: bool = False) -> Trap:
        key = key_of(table, at_commit=at_commit)
        gates = bench.gates
        return Trap(name, *(partial(step, key) for step in (gates.close, gates.reached, gates.unlock)))

    def gates(what: str, table: str) -> list[Trap]:
        return [
            gate(f"{what}, before the commit", table),
            gate(f"{what}, in the commit", table, at_commit=True),
        ]

    def calls(name: str, model: Model, answered: int) -> Trap:
        """Reached once so many are answered and committed and all others wait."""
        before: list[int] = []

        def arm() -> None:
            before.append(world.predictions())
            model.hold(answered)

        def reached() -> bool:
            return model.waiting >= CONCURRENCY and world.predictions() - before[-1] >= answered

        return Trap(name, arm, reached, model.release)

    return {
        "import": gates("items", "annotation_item"),
        "prepare_run": [
            Trap("before a call", fast.lists.clear, lambda: fast.lists_waiting > 0, fast.lists.set),
            calls("in the first calls", fast, 0),
            *gates("answers", "routing_prediction"),
            calls("after a commit, in calls", fast, 7),
            *gates("calibration set", "annotation_workbatch"),
        ],
        "analyse_run": gates("certificate", "routing_certificate"),
        "route_run": [
            *gates("routes", "routing_route"),
            calls("in calls", slow, 2),
            gate("answers, before the commit", "routing_prediction"),
        ],
        "deliver_run": gates("delivery", "routing_delivery"),
    }


def kills(bench: "Bench", times: int, *, only: Collection[str] = ()) -> Iterator[Row]:
    """World after world goes its whole way, until so many kills were made; `only` these jobs are killed."""
    rows: dict[str, Row] = {}
    victims = cycle(VICTIMS)
    left = times
    while left > 0:
        world = World.make()
        of_job = traps(bench, world)
        calls = Calls(bench.models, world)
        for kind, start in bench.way(world).items():
            set_up = of_job[kind][:left] if not only or kind in only else []
            mine = [rows.setdefault(f"{kind}: {trap.name}", Row(f"{kind}: {trap.name}")) for trap in set_up]
            job = _killed_at(bench, start, set_up, mine, calls, victims)
            left -= len(set_up)
            for row in mine or [rows.setdefault("no kill", Row("no kill"))]:
                row.jobs += job.state == Job.State.DONE
                check(world, row)
            if left <= 0:
                break
        calls.fault(None)
        rows[next(reversed(rows))].calls += calls.total()
        if over := bench.worker.left_over():
            until(lambda over=over: not set(over) & set(bench.worker.left_over()), "orphans to end")
    yield from rows.values()


def _killed_at(
    bench: "Bench",
    start: Callable[[], Job],
    set_up: list[Trap],
    rows: list[Row],
    calls: Calls,
    victims: Iterator[str],
) -> Job:
    with ExitStack() as stack:
        for model in bench.models:
            stack.callback(model.release)
        with transaction.atomic():
            job = start()
            if set_up:
                set_up[0].arm()  # the message is sent on commit: no worker has the job yet
        for number, (trap, row) in enumerate(zip(set_up, rows, strict=True)):
            until(lambda trap=trap: bench.alive(job) and trap.reached(), f"{row.fault} to be reached")
            if number + 1 < len(set_up):
                set_up[number + 1].arm()
            bench.worker.kill(next(victims))
            # Only now: until it was dead it may have begun further calls, which count as under way.
            calls.fault(row)
            row.times += 1
            trap.free()
        bench.finish(job)
        return job
