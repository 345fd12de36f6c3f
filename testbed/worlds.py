"""Small projects with recorded predictions, and people who know the truth and label through the queue."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from django.db import models
from django.utils import timezone

from annotation.common.files import open_file
from annotation.common.value_reader import Value
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Item, Job, Label, Project, User, WorkBatch, WorkItem
from annotation.ports import routing_port
from routing.delivery.formats import Row
from routing.labels.all_items import delivery_of
from routing.models import Delivery, Run, Spend
from routing.runs.after_label import price_of_label
from routing.runs.certify import analyse
from routing.runs.complete import run_of_batch
from routing.runs.route import route
from routing.runs.start import start_run
from routing.sources.manage import save_source
from testbed.factories import add_member, make_items, make_project
from testbed.queue_answers import handed_out, submitted
from testbed.states import Way, begin

CHOICES = ("cat", "dog", "emu")
Taken = TypeVar("Taken")


def files_of(delivery: Delivery) -> dict[str, bytes]:
    """What a delivery holds, by the names of its files."""
    files = {}
    for entry in delivery.files.select_related("file"):
        with open_file(entry.file) as content:
            files[entry.name] = content.read()
    return files


def rows_of(run: Run) -> list[Row]:
    """What a delivery would hold now, item by item."""
    with delivery_of(run) as (_, _, pages):
        return [row for page in pages for row in page.rows()]


@dataclass
class World:
    """`truth` is by external id, in its stored form; only the simulated people and the tests know it. `error`
    has of each source how often it errs by u.
    """

    project: Project
    manager: User
    annotators: list[User]
    truth: dict[str, Value]
    keys: int = field(default=0)
    error: Sequence[Callable[[float], float]] = ()
    way: Way | None = None

    def step(self, name: str, arguments: object, take: Callable[[], Taken]) -> Taken:
        """What `take` gives, or gave where the same steps led from the same world: a row as it is stored."""
        if self.way is None:
            return take()

        def take_now() -> tuple[object, int]:
            row = take()
            return (type(row), row.pk) if isinstance(row, models.Model) else row, self.keys

        (found, self.keys), _ = self.way.go(name, [self.manager, arguments], take_now)
        self.project.refresh_from_db()
        if isinstance(found, tuple):
            model, key = found
            found = model._default_manager.get(pk=key)
            found.project = self.project
        return found

    def join(self, count: int) -> list[User]:
        """New annotators of the project, who answer nothing by themselves."""
        keys = self.step("join", count, lambda: [add_member(self.project).pk for _ in range(count)])
        return list(User.objects.filter(pk__in=keys).order_by("pk"))

    def change(self, **fields: Any) -> None:
        """Settings of the project, as they are stored."""
        rows = Project.objects.filter(pk=self.project.pk)
        self.step("change", fields, lambda: rows.update(**fields))
        self.project.refresh_from_db()

    def start(self, **fields: Any) -> Run:
        plan: dict[str, Any] = {
            "epsilon": Decimal("0.1"),
            "alpha": Decimal("0.1"),
            "m": 120,
            "p": Decimal("0.9"),
            "entropy": 7,
            "rule": "fixed_sequence",
        }
        plan |= fields
        return self.step("start", plan, lambda: start_run(project=self.project, user=self.manager, **plan))

    def do(self, kind: str) -> Job:
        """Do the newest job of a kind as a worker would; it must succeed."""
        return self.step("do", kind, lambda: self._do(kind))

    def _do(self, kind: str) -> Job:
        job = self.project.jobs.filter(kind=kind).order_by("-id")[0]
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.DONE, job.error
        return job

    def label(self, limit: int | None = None, answer: Callable[[Item], Value | None] | None = None) -> int:
        """Let people label what waits. `answer` gives None for an item that is to be skipped by everybody."""
        if answer is None:
            return self.step(
                "label", [self.annotators, self.truth, limit], lambda: self._label(limit, self.right)
            )
        return self._label(limit, answer)

    def right(self, item: Item) -> Value:
        return self.truth[item.external_id]

    def _label(self, limit: int | None, answer: Callable[[Item], Value | None]) -> int:
        count = 0
        for user in self.annotators:
            while tasks := handed_out(self.project, user, None if limit is None else limit - count):
                for task in tasks:
                    if (value := answer(task.item)) is None:
                        queue.skip(
                            user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear"
                        )
                        continue
                    self.keys += 1
                    count += submitted(user, task, value, f"key-{self.keys}-of-{self.project.pk}")
        return count

    def arrive(
        self, count: int, *, seed: int = 2, error: Sequence[Callable[[float], float]] | None = None
    ) -> list[Item]:
        """Later items from the same source, in `CHOICES`; with `error` the models err otherwise on them."""
        numbers = range(len(self.truth), len(self.truth) + count)
        rows, truth = _rows(random.Random(seed), numbers, ONE_OF_THREE, error or self.error, None)
        self.truth |= truth
        return _store(self.project, rows)

    def finish(self) -> None:
        """As `label`, but past the queue."""
        self.step("finish", [self.annotators[0], self.truth], self._finish)

    def _finish(self) -> None:
        open_ = WorkItem.objects.filter(batch__project=self.project, state=WorkItem.State.OPEN)
        for batch in WorkBatch.objects.filter(pk__in=open_.values("batch")).order_by("pk"):
            self.fill(batch, lambda work_item: (self.annotators[0], self.truth[work_item.item.external_id]))

    def fill(self, batch: WorkBatch, answer: Callable[[WorkItem], tuple[User, Value]]) -> None:
        """The rows that the queue would leave behind if people labelled what is open, all at once. Routing
        hears of the last label alone, which is the one that changes the run's state.
        """
        open_ = batch.work_items.filter(state=WorkItem.State.OPEN)
        waiting = list(open_.select_related("item").order_by("pk"))
        if not waiting:
            return
        WorkItem.objects.filter(pk__in=[row.pk for row in waiting]).update(
            state=WorkItem.State.DONE, finished_at=timezone.now()
        )
        labels = Label.objects.bulk_create(self._label_of(row, *answer(row)) for row in waiting)
        if run := run_of_batch(batch):
            Spend.objects.bulk_create(price_of_label(run, label) for label in labels[:-1])
        routing_port().label_stored(label=labels[-1], replaced=None)

    def _label_of(self, work_item: WorkItem, annotator: User, value: Value) -> Label:
        self.keys += 1
        return Label(
            item=work_item.item,
            work_item=work_item,
            annotator=annotator,
            value=value,
            idempotency_key=f"key-{self.keys}-of-{self.project.pk}",
        )

    def give_up_all(self) -> int:
        waiting = WorkItem.objects.filter(batch__project=self.project, state=WorkItem.State.OPEN)
        for work_item in waiting:
            queue.give_up(work_item=work_item, actor=self.manager)
        return len(waiting)

    def calibrating(self, **fields: Any) -> Run:
        """A run that is drawn, and whose calibration items wait for people."""
        run = self.start(**fields)
        self.do("prepare_run")
        run.refresh_from_db()
        return run

    def calibrated(self, **fields: Any) -> Run:
        """A run whose calibration items are all labelled."""
        run = self.calibrating(**fields)
        self.finish()
        run.refresh_from_db()
        return run

    def analysed(self, **fields: Any) -> Run:
        return self.analyse(self.calibrated(**fields))

    def analyse(self, run: Run) -> Run:
        self.step("analyse", run, lambda: analyse(run=run, user=self.manager) and None)
        self.do("analyse_run")
        run.refresh_from_db()
        return run

    def routed(self, **fields: Any) -> Run:
        return self.route(self.analysed(**fields))

    def route(self, run: Run) -> Run:
        self.step("route", run, lambda: route(run=run, user=self.manager) and None)
        self.do("route_run")
        run.refresh_from_db()
        return run

    def complete(self, **fields: Any) -> Run:
        return self.complete_from(self.calibrated(**fields))

    def complete_from(self, run: Run) -> Run:
        """A run whose calibration items are labelled, taken to its end."""
        self.route(self.analyse(run))
        self.finish()
        run.refresh_from_db()
        return run


@dataclass(frozen=True)
class Answers:
    """How a kind of task is answered: a label, and what a model writes that has it right or wrong."""

    task_type: str
    choices: Sequence[str]
    true: Callable[[random.Random], Value]
    right: Callable[[random.Random, Value], str]
    wrong: Callable[[random.Random, Value], str]


ONE_OF_THREE = Answers(
    task_type="single_choice",
    choices=CHOICES,
    true=lambda random_: random_.choice(CHOICES),
    right=lambda random_, true: str(true),
    wrong=lambda random_, true: random_.choice([name for name in CHOICES if name != true]),
)
NUMBERS = Answers(
    task_type="number",
    choices=(),
    true=lambda random_: str(random_.randint(-5000, 5000)),
    # The same number, however it is written.
    right=lambda random_, true: random_.choice([f"{true}", f"{int(str(true)):,}", f"{true}.0", f" {true} "]),
    wrong=lambda random_, true: str(int(str(true)) + random_.choice([-10, 7, 1000])),
)
SETS = Answers(
    task_type="multiple_choice",
    choices=CHOICES,
    true=lambda random_: [name for name in CHOICES if random_.random() < 0.5],
    right=lambda random_, true: "; ".join(reversed(true)) if true else "[]",
    wrong=lambda random_, true: json.dumps([name for name in CHOICES if name not in true]),
)
LONG = Answers(
    task_type="long_text",
    choices=(),
    true=lambda random_: f"The {random_.choice(CHOICES)} sleeps\nin the {random_.choice(CHOICES)} house.",
    right=lambda random_, true: f"{true} \n",
    wrong=lambda random_, true: "Nobody knows.",
)


def _rows(
    random_: random.Random,
    numbers: Sequence[int],
    answers: Answers,
    error: Sequence[Callable[[float], float]],
    change: Callable[[int, dict[str, str]], None] | None,
) -> tuple[list[dict[str, str]], dict[str, Value]]:
    """The imported columns of items with these numbers, and their labels by external id."""
    rows: list[dict[str, str]] = []
    truth: dict[str, Value] = {}
    for index in numbers:
        true, u = answers.true(random_), random_.random()
        row = {"text": f"text {index}"}
        for number, chance in enumerate(error, start=1):
            wrong = random_.random() < chance(u)
            other = answers.wrong(random_, true)
            row[f"model{number}"] = other if wrong else answers.right(random_, true)
            row[f"confidence{number}"] = f"{1 - u:.6f}" if number == 1 else f"{1 - chance(u):.6f}"
        if change:
            change(index, row)
        truth[f"t{index}"] = true
        rows.append(row)
    return rows, truth


def _store(project: Project, rows: Sequence[dict[str, str]]) -> list[Item]:
    items = make_items(project, [row["text"] for row in rows])
    for item, row in zip(items, rows, strict=True):
        item.data = row
    Item.objects.bulk_update(items, ["data"])
    return items


ERRORS = (lambda u: 0.8 * u, lambda u: 0.4 * u)


def make_world(
    size: int = 400,
    *,
    answers: Answers = ONE_OF_THREE,
    seed: int = 1,
    error: Sequence[Callable[[float], float]] = ERRORS,
    costs: Sequence[str] = ("1", "2"),
    human_cost: str = "8",
    change: Callable[[int, dict[str, str]], None] | None = None,
    own_scores: bool = True,
) -> World:
    """A project of texts with a recorded source per entry of `error`, wrong with that probability at u.

    `change` may change the recorded columns of an item before it is stored; without `own_scores` only the
    first source has a score.
    """
    rows, truth = _rows(random.Random(seed), range(size), answers, error, change)
    way = begin()

    def make() -> tuple[int, list[int]]:
        project = _project_of(rows, answers, Decimal(human_cost), costs, own_scores=own_scores)
        return project.pk, [add_member(project).pk for _ in range(2)]

    told = [rows, answers.task_type, answers.choices, human_cost, costs, own_scores]
    (key, people), _ = way.go("make", told, make) if way else (make(), False)
    project = Project.objects.select_related("created_by").get(pk=key)
    annotators = list(User.objects.filter(pk__in=people).order_by("pk"))
    return World(project, project.created_by, annotators, truth, error=error, way=way)


def _project_of(
    rows: Sequence[dict[str, str]],
    answers: Answers,
    human_cost: Decimal,
    costs: Sequence[str],
    *,
    own_scores: bool,
) -> Project:
    project = make_project(
        task_type=answers.task_type, choices=answers.choices, human_cost=human_cost, currency="USD"
    )
    _store(project, rows)
    project.columns = list(dict.fromkeys(name for row in rows for name in row))
    project.save(update_fields=["columns"])
    for number, cost in enumerate(costs, start=1):
        add_recorded(project, number, cost, scored=own_scores or number == 1)
    return project


def add_recorded(project: Project, number: int, cost: str, *, scored: bool = True) -> None:
    """A source whose answers are in the column "model1", and so on, with confidences where it is `scored`."""
    score = {"confidence_column": f"confidence{number}"} if scored else {}
    save_source(
        project=project,
        user=project.created_by,
        name=f"Model {number}",
        backend="recorded",
        params={"label_column": f"model{number}", **score},
        cost_per_label=Decimal(cost),
    )
