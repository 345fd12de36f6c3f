"""The whole way of a project whose runs have an expert, or two: they label nothing else, and people come, go,
forget how to label, and are waited for no longer.
"""

from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from annotation.errors import ConflictError, HypacError, InputError
from annotation.labelling import queue
from annotation.models import Label, User, WorkItem
from annotation.people.members import set_active
from routing.core.losses import make_loss
from routing.core.reference.sources import CHECKED, deliver as delivered_by_the_core
from routing.models import AuditedItem, ExpertRequest, Route, Run
from routing.runs.certify import analyse
from routing.runs.expert.ask import ask_expert
from routing.runs.expert.leaving import give_up_open_items
from routing.runs.start import start_run
from testbed.factories import add_member
from testbed.worlds import rows_of
from tests.stateful.invariants import State
from tests.stateful.labelling import CHOICES, PEOPLE, Held
from tests.stateful.machine import WholeWay

UNFINISHED = (State.OPEN, State.LEASED)


REACHED: Counter[str] = Counter()
"""Why experts were asked in all examples: a machine that gets to no second look would show nothing."""


class ExpertWay(WholeWay):
    """`seen` is what the experts said last about an item. They are right, and so is the slow model on two
    items of three; people are as the machine draws them, and always wrong while they are `slipping`.
    """

    OWN_SCORES = False  # or models and expert hardly need people
    plan: dict[str, Any] = {
        "reference": Run.Reference.EXPERT,
        "epsilon": Decimal("0.3"),  # with room for people's mistakes, or hardly a policy has some
        "alpha": Decimal("0.4"),
        "m": 20,
        "recheck_share": Decimal("0.5"),
        "audit_share": Decimal("0.8"),
        "accepted_error": Decimal("0.05"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.other = add_member(self.project)
        self.experts = [self.people[-1], self.other]
        self.newcomers: list[User] = []
        self.slipping = False
        self.seen: dict[str, str] = {}
        self.shown: dict[int, int] = {}  # what was ever given to somebody: work item -> item

    def claim(self, person: int, ahead: bool) -> None:
        before = len(self.held)
        super().claim(person, ahead)
        self._note(self.held[before:])

    def _note(self, held: list[Held]) -> None:
        rows = WorkItem.objects.filter(pk__in=[one.work_item for one in held])
        self.shown |= dict(rows.values_list("pk", "item"))

    def _answered(self, label: Label) -> None:
        if label.annotator in self.experts:
            self.seen[label.item.external_id] = label.value
            runs = Run.objects.filter(expert_batch=label.work_item.batch, analysed_at__isnull=False)
            self.touched |= set(runs.values_list("pk", flat=True))
        else:
            super()._answered(label)

    def submit_as(self, user: User, name: str, drawn: str) -> str:
        number = int(name[1:])
        slow = self.rows[name]["slow"]
        true = CHOICES[(CHOICES.index(slow) + 1) % 3] if number % 3 == 1 else slow
        if user in self.experts:
            return true
        if self.slipping:
            return CHOICES[(CHOICES.index(true) + 1) % 3]
        return true if drawn != CHOICES[2] else drawn

    # --- People ---------------------------------------------------------------------------------------------

    @rule(slipping=st.booleans())
    def people_slip(self, slipping: bool) -> None:
        """After the calibration they may label otherwise than in it."""
        run = self._run()
        self.slipping = slipping and run is not None and run.state == Run.State.LABELLING

    @precondition(lambda self: self._run() is not None and self._run().state == Run.State.LABELLING)
    @rule(rounds=st.integers(1, 20))
    def bad_days(self, rounds: int) -> None:
        """Annotators label wrongly, an item each, and the experts all that this brings them."""
        self.slipping = True
        for _ in range(rounds):
            for person in range(PEOPLE):
                self._label_some(person, 40 if self.people[person] in self.experts else 1)
            self.the_other_expert_labels(40)
        self.slipping = False

    def _label_some(self, person: int, most: int) -> None:
        for _ in range(most):
            before = len(self.held)
            self.claim(person, ahead=False)
            if len(self.held) == before:
                return
            self.submit(len(self.held) - 1, CHOICES[2], twice=False)

    @rule(most=st.integers(1, 40))
    def the_other_expert_labels(self, most: int) -> None:
        for _ in range(most):
            try:
                task = queue.claim(project=self.project, user=self.other)
            except HypacError:
                return
            if task is None:
                return
            self.held.append(Held(self.other, task.work_item.pk, task.token))
            self._note(self.held[-1:])
            self.submit(len(self.held) - 1, CHOICES[0], twice=False)

    @rule(active=st.booleans())
    def the_other_expert_comes_or_goes(self, active: bool) -> None:
        set_active(project=self.project, actor=self.manager, user=self.other, active=active)

    @rule()
    def somebody_new_comes(self) -> None:
        """Whatever waits, nothing of it is theirs."""
        if len(self.newcomers) < 2:
            self.newcomers.append(add_member(self.project))
        for user in self.newcomers:
            assert queue.claim_ahead(project=self.project, user=user) == []

    def ordinary_days(self, days: int, each: int, seed: int, statement: int | None) -> None:
        for _ in range(days):
            super().ordinary_days(1, each, seed, statement)
            self.the_other_expert_labels(each)

    # --- A manager ------------------------------------------------------------------------------------------

    def draw(self, overlap: int) -> None:
        """Start a run, of two experts where others ask two people. It is refused while one is under way, and
        where too little is left for a draw.
        """
        try:
            start_run(
                project=self.project,
                user=self.manager,
                entropy=len(self.rows),
                expert={user.username: None for user in self.experts[:overlap]},
                roster={user.username: None for user in self.people[:-1]},  # a reviewer may label, too
                accept_unusable=True,  # its models leave out answers now and then
                allow_uncertifiable=True,
                **self.plan,
            )
        except (ConflictError, InputError):
            return

    def certify(self) -> None:
        """What comes next before the result: ask the expert, or analyse."""
        run = self._run()
        asked = run.state == Run.State.CALIBRATING
        batches = [run.calibration_batch_id] if asked else [run.calibration_batch_id, run.expert_batch_id]
        waiting = WorkItem.objects.filter(batch__in=batches, state__in=UNFINISHED).count()
        try:
            (ask_expert if asked else analyse)(run=run, user=self.manager)
        except ConflictError:
            return
        assert all(batches)
        assert not waiting, "the labels were locked before the last one was there"

    @precondition(lambda self: self._run() is not None)
    @rule(person=st.integers(0, PEOPLE))
    def give_up_on(self, person: int) -> None:
        """Somebody is absent: nothing waits for them any more; of an expert's items nobody else is asked."""
        user, run = [*self.people, self.other][person], self._run()
        work = WorkItem.objects.filter(batch__project=self.project)
        before = set(work.filter(assigned_to=user, state__in=UNFINISHED).values_list("pk", flat=True))
        others = work.exclude(assigned_to=user).filter(state__in=UNFINISHED).count()
        try:
            count = give_up_open_items(run=run, user=user, actor=self.manager)
        except ConflictError:
            return
        assert count == len(before)
        left = work.filter(pk__in=before)
        assert not left.filter(state__in=UNFINISHED).exists()
        if user in self.experts:
            assert set(left.values_list("state", flat=True)) == {State.UNLABELABLE}
            assert work.exclude(assigned_to=user).filter(state__in=UNFINISHED).count() == others
            REACHED["given up by an expert"] += 1

    # --- What holds at every moment -------------------------------------------------------------------------

    @invariant()
    def everybody_labels_what_is_theirs(self) -> None:
        labels = Label.objects.filter(item__project=self.project, version=1).select_related("work_item")
        experts = self._batches_of_the_expert()
        for label in labels:
            assert label.annotator_id == label.work_item.assigned_to_id, "somebody inherited an item"
            assert (label.annotator in self.experts) == (label.work_item.batch_id in experts)

    @invariant()
    def nobody_labels_an_item_twice(self) -> None:
        labels = Label.objects.filter(item__project=self.project, version=1)
        made = Counter(labels.values_list("annotator", "item"))
        assert not [who for who, times in made.items() if times > 1]
        by_experts = labels.filter(annotator__in=self.experts)
        assert by_experts.count() == by_experts.values("item").distinct().count(), "two experts for one item"

    @invariant()
    def newcomers_hold_nothing(self) -> None:
        for user in self.newcomers:
            assert not WorkItem.objects.filter(assigned_to=user).exists()
            assert not WorkItem.objects.filter(leased_to=user).exists()

    @invariant()
    def what_was_shown_keeps_its_item(self) -> None:
        """Whatever is shuffled in later."""
        rows = WorkItem.objects.filter(pk__in=list(self.shown)).values_list("pk", "item")
        assert dict(rows) == self.shown

    @invariant()
    def the_expert_is_asked_what_there_is_a_reason_for(self) -> None:
        experts = self._batches_of_the_expert()
        work = WorkItem.objects.filter(batch__in=experts).values_list("batch", "item")
        runs = {batch: run.pk for run in self.project.runs.all() for batch in self._batches_of(run)}
        asked = ExpertRequest.objects.filter(run__project=self.project).values_list("run", "item")
        assert sorted((runs[batch], item) for batch, item in work) == sorted(asked)

    @invariant()
    def second_looks_and_audits_follow_the_labels(self) -> None:
        """Whatever died meanwhile: what is labelled is compared in the transaction that stores it."""
        for run in self.project.runs.filter(routed_batch__isnull=False):
            best = run.run_sources.order_by("position").last()
            done = WorkItem.objects.filter(batch=run.routed_batch, state=State.DONE)
            asked = set(run.expert_requests.values_list("item", flat=True))
            checked = set(
                Route.objects.filter(run=run, position=best.position + CHECKED + 1).values_list(
                    "item", flat=True
                )
            )
            audited = set(AuditedItem.objects.filter(run=run).values_list("item", flat=True))
            labels = Label.objects.filter(work_item__in=done, superseded_by__isnull=True)
            for item, name, value in labels.values_list("item", "item__external_id", "value"):
                differs = item in checked and value != self.rows[name][best.source.name]
                assert item in asked or not (differs or item in audited - checked)

    def _batches_of_the_expert(self) -> set[int]:
        return {batch for run in self.project.runs.all() for batch in self._batches_of(run)}

    @staticmethod
    def _batches_of(run: Run) -> list[int]:
        return [batch for batch in (run.expert_batch_id, run.expert_routed_batch_id) if batch]

    # --- The end --------------------------------------------------------------------------------------------

    def _label_all(self) -> None:
        self.slipping = False
        self.time_passes()
        self.the_other_expert_labels(1000)
        super()._label_all()

    def teardown(self) -> None:
        set_active(project=self.project, actor=self.manager, user=self.other, active=True)
        super().teardown()
        REACHED.update(ExpertRequest.objects.filter(run__project=self.project).values_list("why", flat=True))
        REACHED.update(f"run {state}" for state in self.project.runs.values_list("state", flat=True))

    def _delivered(self, run: Run) -> None:
        super()._delivered(run)
        self._follows_section_13(run)

    def _follows_section_13(self, run: Run) -> None:
        """Each label is the one that the statistics say is delivered."""
        rows = {row.external_id: row for row in rows_of(run)}
        loss = make_loss(run.loss, run.loss_params)
        why = dict(run.expert_requests.values_list("item__external_id", "why"))
        models = [source.source.name for source in run.run_sources.order_by("position")]
        people = self._said((run.calibration_batch_id, run.routed_batch_id))
        experts = self._said((run.expert_batch_id, run.expert_routed_batch_id))
        for name, position in Route.objects.filter(run=run).values_list("item__external_id", "position"):
            reason, expert = why.get(name, ""), experts.get(name)
            expected = delivered_by_the_core(
                position - 1,
                answers=[self.rows[name][model] for model in models],
                annotator=people.get(name),
                expert=expert,
                loss=loss,
                seen=reason if reason in ("asked", "recheck", "audit", "alarm") else "",
            )
            blank = rows[name].label is None
            if blank and reason in ("asked", "recheck") and position == len(models) + CHECKED + 1:
                continue  # what she was to see and could not is no label that two agree on
            assert rows[name].label == expected.label, (name, reason)
            assert (rows[name].expert_saw or "") == reason

    def _said(self, batches: tuple[int | None, ...]) -> dict[str, str]:
        labels = Label.objects.filter(work_item__batch__in=list(filter(None, batches)))
        newest = labels.filter(superseded_by__isnull=True)
        return dict(newest.values_list("item__external_id", "value"))

    def _check_row(self, row: dict[str, Any], routes: dict[str, int], models: dict[int, str]) -> None:
        name = row["external_id"]
        if row["source"] == "expert":
            assert row["label"] == self.seen[name]
            assert row["annotator"] in {user.username for user in self.experts}
            assert bool(row["expert_saw"]) == bool(row["certificate_id"])
            return
        super()._check_row(row, routes, models)
        run = self.project.runs.filter(certificate__sha256=row["certificate_id"]).first()
        if run is not None:
            hers = WorkItem.objects.filter(batch__in=self._batches_of(run), item__external_id=name)
            assert not hers.filter(state=State.DONE).exists(), "what she said is not delivered"
