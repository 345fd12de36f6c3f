"""The whole way of a project, in any order that people, workers and accidents can bring about.

`WholeWay` draws what happens next; after every step the invariants are read from the database, and at the end
the project is brought to its delivery, which must hold every imported item once, with the right provenance.
"""

import io
import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from annotation.common.files import store_file
from annotation.errors import ConflictError, InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Item, Job, WorkItem
from annotation.people.members import set_active
from routing.delivery.deliver import deliver
from routing.models import Delivery, Prediction, Route, Run, Spend
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.route import route
from routing.runs.start import start_run
from routing.sources.manage import save_source
from testbed.factories import add_member, make_project
from tests.stateful.delivered import Deliveries
from tests.stateful.kills import killed_before
from tests.stateful.labelling import CHOICES, PEOPLE, Held, Labelling, people

FIRST_ITEMS = 40
MODELS = ("fast", "slow")
PLAN: dict[str, Any] = {
    "epsilon": Decimal("0.2"),
    "alpha": Decimal("0.2"),
    "m": 20,
    "p": Decimal("0.8"),
}
# More rounds than any way to the end takes: beyond it, the project is stuck.
ROUNDS = 60

State = WorkItem.State
# At which statement a worker is killed; jobs of this size have some twenty to two hundred.
statements = st.one_of(st.none(), st.integers(0, 30), st.integers(0, 150))


class WholeWay(Labelling, Deliveries):
    OWN_SCORES = True
    """Whether later models have scores of their own."""

    def __init__(self) -> None:
        super().__init__()
        with connection.cursor() as cursor:
            # All examples are one transaction: what PostgreSQL knows of its tables is what it is told within.
            cursor.execute("ANALYZE")
        self.project = make_project(choices=CHOICES, human_cost=Decimal(8), currency="USD")
        self.manager = self.project.created_by
        self.people = [add_member(self.project) for _ in range(PEOPLE)]
        self.reviewer = add_member(self.project, "reviewer")  # has seen nothing of what the models say
        self.rows: dict[str, dict[str, str]] = {}  # of every item that was ever in a file
        self.answers: dict[str, tuple[str, str]] = {}  # item -> who answered last, and what
        self.held: list[Held] = []
        self.touched: set[int] = set()  # runs under whose analysis a label was changed
        self.keys = 0

    # --- Data -----------------------------------------------------------------------------------------------

    @initialize()
    def first_import(self) -> None:
        self.import_file(FIRST_ITEMS, 0)
        self.do_all_jobs()
        for position, name in enumerate(MODELS, start=1):
            save_source(
                project=self.project,
                user=self.manager,
                name=name,
                backend="recorded",
                params={
                    "label_column": name,
                    **(
                        {"confidence_column": f"{name}_confidence"}
                        if self.OWN_SCORES or position == 1
                        else {}
                    ),
                },
                cost_per_label=Decimal(position),
            )

    @rule(new=st.integers(0, 15), again=st.integers(0, 10))
    def import_file(self, new: int, again: int) -> None:
        """A file with new rows, and rows that are there already."""
        repeated = list(self.rows.values())[:again]
        added = [self._row(len(self.rows) + number) for number in range(new)]
        if not repeated and not added:
            return
        lines = "".join(json.dumps(row) + "\n" for row in (*repeated, *added, *repeated))
        stored = store_file(
            project=self.project,
            content=io.BytesIO(lines.encode()),
            original_name="items.jsonl",
            media_type="application/x-ndjson",
        )
        try:
            start_import(
                project=self.project,
                user=self.manager,
                stored_file=stored,
                mapping=ColumnMapping(id_column="id", text_column="text"),
            )
        except ConflictError:
            return  # another one is under way
        self.rows |= {row["id"]: row for row in added}

    @staticmethod
    def _row(number: int) -> dict[str, str]:
        """What the models say, and how sure they are, is spread over the items by arithmetic."""
        sure = (number * 37 % 100) / 100
        return {
            "id": f"i{number}",
            "text": f"text {number}",
            "fast": CHOICES[number * 7 % 3],
            "fast_confidence": f"{sure:.2f}",
            "slow": CHOICES[number * 5 % 3],
            "slow_confidence": f"{1 - sure / 2:.3f}",
        }

    # --- Workers --------------------------------------------------------------------------------------------

    @rule(statement=statements, twice=st.booleans())
    def work(self, statement: int | None, twice: bool) -> None:
        """A worker takes the oldest job, and may be killed at it. Its message may come twice."""
        job = self._unfinished().first()
        if job is None:
            return
        if statement is None:
            jobs.run(job.pk)
        else:
            with killed_before(statement):
                jobs.run(job.pk)
        if twice:
            before = self._facts()
            job.refresh_from_db()
            if job.state != Job.State.QUEUED:  # one that failed may be tried again
                assert not jobs.run(job.pk), "a second message had an effect"
                assert self._facts() == before

    @rule()
    def time_passes(self) -> None:
        """Long enough for leases to expire, and for the reconciler to notice workers that are gone."""
        past = timezone.now() - timedelta(days=1)
        mine = WorkItem.objects.filter(batch__project=self.project)
        mine.filter(state=State.LEASED).update(lease_expires_at=past)
        self._unfinished().update(heartbeat_at=past)
        jobs.reconcile()

    def _unfinished(self) -> Any:
        return self.project.jobs.filter(state__in=jobs.UNFINISHED).order_by("pk")

    def _facts(self) -> tuple[int, ...]:
        items = Item.objects.filter(project=self.project)
        return (
            items.count(),
            Prediction.objects.filter(item__in=items).count(),
            Spend.objects.filter(project=self.project).count(),
            WorkItem.objects.filter(item__in=items).count(),
            Route.objects.filter(item__in=items).count(),
            Delivery.objects.filter(run__project=self.project).count(),
        )

    def do_all_jobs(self) -> None:
        """All jobs to their end, as it comes about once nobody kills workers any more."""
        for _ in range(ROUNDS):
            if (job := self._unfinished().first()) is None:
                break
            self.time_passes()
            jobs.run(job.pk)
        failed = self.project.jobs.filter(state=Job.State.FAILED).order_by("pk")
        for job in failed:
            # Only those are started again whose work is still wanted.
            if self._unfinished().filter(unique_key=job.unique_key).exists():
                continue
            if job.kind != "import" and job.params.get("run") != getattr(self._run(), "pk", None):
                continue
            jobs.retry(job=job)
            assert jobs.run(job.pk), f"{job.kind} failed: {Job.objects.get(pk=job.pk).error}"
        assert not self._unfinished().exists()

    # --- A manager ------------------------------------------------------------------------------------------

    def _run(self) -> Run | None:
        return self.project.runs.order_by("-number").first()

    @rule(overlap=st.sampled_from((1, 1, 2)), statement=statements)
    def go_on(self, overlap: int, statement: int | None) -> None:
        """The manager does what comes next, and a worker begins with it; both may be refused."""
        run = self._run()
        if run is None or run.state in (Run.State.COMPLETE, Run.State.CANCELLED):
            self.draw(overlap)
        elif run.state == Run.State.ANALYSED:
            self.send()
        else:
            self.certify()
        self.work(statement, twice=False)

    @rule(step=st.sampled_from(("draw", "certify", "send")))
    def out_of_turn(self, step: str) -> None:
        """Somebody presses a button whose time it may not be."""
        if step == "draw":
            self.draw(1)
        elif self._run() is not None:
            getattr(self, step)()

    def draw(self, overlap: int) -> None:
        """Start a run. It is refused while one is under way, and where too little is left for a draw."""
        self.project.overlap = overlap
        self.project.save(update_fields=["overlap"])
        run = self._run()
        try:
            start_run(
                project=self.project,
                user=self.manager,
                entropy=len(self.rows),
                accept_unusable=True,  # its models leave out answers now and then
                **PLAN,
            )
        except (ConflictError, InputError):
            return
        assert run is None or run.state in (Run.State.ANALYSED, Run.State.COMPLETE, Run.State.CANCELLED)

    def certify(self) -> None:
        run = self._run()
        waiting = WorkItem.objects.filter(
            batch=run.calibration_batch_id, state__in=(State.OPEN, State.LEASED)
        ).count()
        try:
            analyse(run=run, user=self.manager)
        except ConflictError:
            return
        assert run.calibration_batch_id
        assert not waiting, "analysed before the last calibration label"

    def send(self) -> None:
        """Route the run's items."""
        run = self._run()
        before = run.state
        try:
            route(run=run, user=self.manager)
        except ConflictError:
            return
        assert before == Run.State.ANALYSED

    @precondition(lambda self: self._run() is not None)
    @rule(statement=statements)
    def export(self, statement: int | None) -> None:
        try:
            deliver(run=self._run(), user=self.manager)
        except ConflictError:
            return
        self.work(statement, twice=False)

    @precondition(lambda self: self._run() is not None)
    @rule(sure=st.integers(0, 9))
    def cancel(self, sure: int) -> None:
        """Seldom, so that most runs come to something."""
        if sure == 0:
            try:
                cancel_run(run=self._run(), user=self.manager)
            except ConflictError:
                return

    @rule(give_up=st.booleans())
    def decide(self, give_up: bool) -> None:
        """About an item that everybody has skipped."""
        for work_item in queue.stuck_items(self.project)[:1]:
            if give_up:
                queue.give_up(work_item=work_item, actor=self.manager)
            else:
                queue.ask_again(work_item=work_item, actor=self.manager)

    @rule(person=people, active=st.booleans())
    def change_member(self, person: int, active: bool) -> None:
        set_active(project=self.project, actor=self.manager, user=self.people[person], active=active)

    # --- A usual week ---------------------------------------------------------------------------------------

    @rule(days=st.integers(1, 4), each=st.integers(1, 40), seed=st.integers(0, 2), statement=statements)
    def ordinary_days(self, days: int, each: int, seed: int, statement: int | None) -> None:
        """Workers work, people label, and the manager goes on with what comes next."""
        for _ in range(days):
            self.work(statement, twice=False)
            self.work(None, twice=False)
            for person in range(PEOPLE):
                for number in range(each):
                    before = len(self.held)
                    self.claim(person, ahead=False)
                    if len(self.held) == before:
                        break
                    self.submit(len(self.held) - 1, CHOICES[(seed + number) % 3], twice=False)
            self.go_on(1 + seed % 2, None)

    # --- The end --------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        for user in self.people:
            set_active(project=self.project, actor=self.manager, user=user, active=True)
        self.do_all_jobs()
        assert set(self.project.items.values_list("external_id", flat=True)) == set(self.rows)
        if not self.project.runs.exclude(state=Run.State.CANCELLED).exists():
            self.draw(1)
        for _ in range(ROUNDS):
            self.do_all_jobs()
            run = self._run()
            if run is None or run.state in (Run.State.COMPLETE, Run.State.CANCELLED):
                break
            self._label_all()
            self.certify()
            self.send()
        routed = self.project.runs.filter(state__in=(Run.State.LABELLING, Run.State.COMPLETE))
        if run := routed.order_by("-number").first():
            assert run.state == Run.State.COMPLETE
            self._delivered(run)
        self.nobody_holds_what_another_holds()
        self.every_label_was_asked_for_once()
        self.every_answer_is_paid_once()

    def _label_all(self) -> None:
        """What nobody can or wants to label is given up."""
        self.time_passes()
        self.held.clear()
        for person in range(PEOPLE):
            while True:
                self.claim(person, ahead=False)
                if not self.held:
                    break
                self.submit(0, CHOICES[self.keys % 3], twice=False)
        for work_item in queue.stuck_items(self.project):
            if work_item.has_answers:
                queue.ask_no_more(work_item=work_item, actor=self.manager)
            else:
                queue.give_up(work_item=work_item, actor=self.manager)
        self._adjudicate()

    def _adjudicate(self) -> None:
        """A reviewer decides where two people differ."""
        from annotation.labelling.labels_of_record import unsettled

        for batch in self.project.work_batches.filter(overlap__gt=1, withdrawn_at=None, locked_at=None):
            for work_item in unsettled(WorkItem.objects.filter(batch=batch)).select_related("batch", "item"):
                queue.adjudicate(batch=batch, item=work_item.item, actor=self.reviewer, value=CHOICES[0])
