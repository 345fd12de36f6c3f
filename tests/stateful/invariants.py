"""What holds of a project at every moment, read from the database."""

from collections import Counter

from django.db.models import Sum
from hypothesis.stateful import RuleBasedStateMachine, invariant

from annotation.models import Item, Label, Project, WorkItem
from routing.models import Prediction, Run, Spend

State = WorkItem.State


class Invariants(RuleBasedStateMachine):
    """`rows` are those of all items that were ever in a file, by id; `touched` the runs under whose analysis
    a label was changed.
    """

    project: Project
    rows: dict[str, dict[str, str]]
    touched: set[int]

    @invariant()
    def nobody_holds_what_another_holds(self) -> None:
        leases = WorkItem.objects.filter(batch__project=self.project, state=State.LEASED)
        slots = Counter(leases.values_list("item", "slot"))
        assert all(count == 1 for count in slots.values())
        of_one = Counter(leases.values_list("item", "leased_to"))
        assert all(count == 1 for count in of_one.values()), "one person holds an item twice"

    @invariant()
    def every_label_was_asked_for_once(self) -> None:
        labels = Label.objects.filter(item__project=self.project)
        first = Counter(labels.filter(version=1).values_list("work_item", flat=True))
        done = WorkItem.objects.filter(batch__project=self.project, state=State.DONE)
        assert first == Counter(done.values_list("pk", flat=True))
        current = labels.filter(superseded_by__isnull=True)
        assert Counter(current.values_list("work_item", flat=True)) == first
        given = labels.filter(version=1).values_list("work_item__batch", "item", "annotator")
        assert max(Counter(given).values(), default=0) <= 1, "one person labelled an item twice in a batch"

    @invariant()
    def items_are_those_of_the_files(self) -> None:
        items = Item.objects.filter(project=self.project)
        names = list(items.values_list("external_id", flat=True))
        assert len(set(names)) == len(names)
        assert set(names) <= set(self.rows)
        assert sorted(items.values_list("position", flat=True)) == list(range(len(names)))

    @invariant()
    def every_answer_is_paid_once(self) -> None:
        predictions = Prediction.objects.filter(item__project=self.project)
        models = Spend.objects.filter(project=self.project, source__isnull=False)
        spent = models.aggregate(money=Sum("amount"), answers=Sum("quantity"))
        assert (spent["money"] or 0) == (predictions.aggregate(money=Sum("cost"))["money"] or 0)
        assert (spent["answers"] or 0) == predictions.count()
        labels = Label.objects.filter(item__project=self.project, version=1).count()
        people = Spend.objects.filter(project=self.project, source__isnull=True)
        assert (people.aggregate(answers=Sum("quantity"))["answers"] or 0) == labels
        answers = Counter(predictions.values_list("item", "source", "fingerprint"))
        assert max(answers.values(), default=0) <= 1

    @invariant()
    def a_changed_label_leaves_its_mark(self) -> None:
        unmarked = Run.objects.filter(pk__in=self.touched, invalid_reasons=[])
        assert not unmarked.exists(), "a label changed under a certificate that does not say so"
