"""Several people answer for one item: who is asked, and what becomes its label of record."""

import random
from decimal import Decimal

import pytest
from django.db import connection

from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import queue
from annotation.labelling.labels_of_record import answers_of, disagreements, record_values
from annotation.labelling.queries import waiting_for
from annotation.models import AuditEvent, Label, Settlement, WorkBatch, WorkItem
from tests.annotation.labelling.several import SeveralDesk as Desk

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
State = WorkItem.State
Method = Settlement.Method


class TestAsking:
    def test_every_slot_is_for_another_person(self) -> None:
        desk = Desk(people=4)
        assert waiting_for(desk.project, desk.people[0]) == 1
        desk.answer("cat", "cat", "dog")
        for user in desk.people:
            assert queue.claim(project=desk.project, user=user) is None
            assert waiting_for(desk.project, user) == 0
        annotators = set(Label.objects.values_list("annotator", flat=True))
        assert annotators == {user.pk for user in desk.people[:3]}

    def test_who_holds_one_slot_is_not_given_another(self) -> None:
        desk = Desk(people=3)
        first, again = (queue.claim(project=desk.project, user=desk.people[0]) for _ in range(2))
        assert first.work_item == again.work_item
        other = queue.claim(project=desk.project, user=desk.people[1])
        assert other.item == first.item
        assert other.work_item != first.work_item

    def test_who_skipped_one_slot_is_not_asked_for_another(self) -> None:
        desk = Desk()
        desk.skip(desk.people[0])
        assert queue.claim(project=desk.project, user=desk.people[0]) is None
        assert waiting_for(desk.project, desk.people[0]) == 0
        assert waiting_for(desk.project, desk.people[1]) == 1

    def test_a_share_of_the_items_gets_several_and_the_entropy_says_which(self) -> None:
        desk = Desk(items=400, share="0.25")
        several = desk.batch.work_items.filter(slot=1).count()
        assert 60 < several < 140  # 100 on average, sd 8.7
        assert desk.batch.work_items.filter(slot=2).count() == several
        assert desk.batch.work_items.count() == 400 + 2 * several
        again = queue.create_batch(
            project=desk.project,
            item_ids=[item.pk for item in reversed(desk.items)],
            blind=False,
            priority=1,
            entropy=11,
            overlap=3,
            overlap_share=Decimal("0.25"),
        )
        one, other = (
            set(batch.work_items.filter(slot=2).values_list("item", flat=True))
            for batch in (desk.batch, again)
        )
        assert one == other

    def test_without_overlap_no_row_is_added_and_nothing_is_settled(self) -> None:
        desk = Desk(items=2, overlap=1)
        desk.answer("cat", "dog")
        assert desk.batch.work_items.count() == 2
        assert not Settlement.objects.exists()
        assert queue.batch_progress(desk.batch).settled == 2
        assert desk.record() in ("cat", "dog")


class TestSettling:
    @pytest.mark.parametrize(
        ("answers", "record"),
        [
            (("cat", "cat", "cat"), "cat"),
            (("dog", "cat", "dog"), "dog"),
            (("cat", "dog", "emu"), None),
            (("cat", "cat", "dog", "dog"), None),
            (("cat", "cat", "dog", "cat"), "cat"),
            (("cat", "dog"), None),
            (("dog", "dog"), "dog"),
        ],
    )
    def test_more_than_half_settle_it(self, answers, record) -> None:
        desk = Desk(overlap=len(answers), people=len(answers))
        desk.answer(*answers[:-1])
        assert desk.record() is None
        assert not desk.waiting
        desk.submit(desk.people[len(answers) - 1], answers[-1])
        assert desk.record() == record
        assert desk.waiting == ([] if record else [desk.items[0].pk])
        progress = queue.batch_progress(desk.batch)
        assert (progress.items, progress.settled, progress.disagreeing) == (
            1,
            int(bool(record)),
            int(not record),
        )
        assert (progress.total, progress.done) == (len(answers), len(answers))
        assert progress.finished is bool(record)

    def test_a_correction_settles_anew_in_a_new_version(self) -> None:
        desk = Desk()
        labels = desk.answer("cat", "cat", "dog")
        desk.correct(labels[2], "cat")
        assert Settlement.objects.count() == 1  # the same label of record
        label = desk.correct(labels[0], "dog")
        assert desk.record() == "cat"
        desk.correct(labels[1], "emu")
        assert desk.record() is None
        assert desk.waiting == [desk.items[0].pk]
        desk.correct(label, "cat")
        assert desk.record() == "cat"
        versions = Settlement.objects.order_by("version").values_list("version", "value", "method")
        assert list(versions) == [(1, "cat", "majority"), (2, None, "majority"), (3, "cat", "majority")]

    def test_answers_are_the_newest_versions_by_slot(self) -> None:
        desk = Desk()
        labels = desk.answer("cat", "cat", "dog")
        newest = desk.correct(labels[1], "emu")
        assert answers_of(desk.batch, desk.items[0]) == [labels[0], newest, labels[2]]


class TestAdjudicating:
    def test_a_reviewer_decides(self) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        settlement = desk.adjudicate("dog", comment="see the guidelines")
        assert (settlement.method, settlement.decided_by, settlement.version) == (
            "adjudicated",
            desk.reviewer,
            1,
        )
        assert desk.record() == "dog"
        assert not desk.waiting
        assert AuditEvent.objects.get(action="work.adjudicated").target == f"settlement:{settlement.pk}"

    def test_the_second_reviewer_is_told_and_the_first_may_think_again(self) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        desk.adjudicate("dog")
        with pytest.raises(ConflictError, match="Somebody else has decided"):
            desk.adjudicate("cat", actor=desk.people[0])
        assert desk.adjudicate("dog").version == 1  # sent twice, it has one effect
        assert desk.adjudicate("emu").version == 2
        assert desk.record() == "emu"

    def test_a_decision_stays_while_people_differ_and_gives_way_to_a_majority(self) -> None:
        desk = Desk()
        labels = desk.answer("cat", "dog", "emu")
        desk.adjudicate("dog")
        label = desk.correct(labels[1], "emu")  # cat, emu, emu
        assert desk.record() == "emu"
        desk.correct(label, "dog")
        assert desk.record() is None  # what the reviewer saw was another time
        desk.adjudicate("cat")
        desk.correct(labels[0], "dog")
        assert desk.record() == "dog"

    def test_what_is_not_to_be_decided(self) -> None:
        desk = Desk()
        with pytest.raises(ConflictError, match="Not everybody"):
            desk.adjudicate("cat")
        with pytest.raises(InputError) as raised:
            desk.adjudicate("cow")
        assert raised.value.where == "value"
        desk.answer("cat", "cat", "dog")
        with pytest.raises(ConflictError, match="answers agree"):
            desk.adjudicate("dog")
        single = Desk(overlap=1)
        single.answer("cat")
        with pytest.raises(ConflictError, match="One person"):
            single.adjudicate("dog")
        with pytest.raises(InputError, match="Nobody was asked"):
            queue.adjudicate(batch=single.batch, item=desk.items[0], actor=desk.reviewer, value="cat")

    def test_a_locked_batch_wants_it_confirmed(self) -> None:
        desk = Desk()
        labels = desk.answer("cat", "cat", "dog")
        queue.lock_batch(batch=desk.batch)
        desk.correct(labels[0], "emu")
        assert not desk.waiting  # locked
        with pytest.raises(ConflictError, match="Confirm"):
            desk.adjudicate("dog")
        assert desk.adjudicate("dog", confirmed=True).value == "dog"

    def test_a_batch_with_differences_is_not_locked(self) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        with pytest.raises(ConflictError, match="People differ about 1"):
            queue.lock_batch(batch=desk.batch)
        assert WorkBatch.objects.get(pk=desk.batch.pk).locked_at is None
        desk.adjudicate("emu")
        queue.lock_batch(batch=desk.batch)

    def test_a_withdrawn_batch_waits_for_nobody(self) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        queue.withdraw_batch(batch=desk.batch)
        assert not desk.waiting
        with pytest.raises(ConflictError, match="no longer asked"):
            desk.adjudicate("cat")

    def test_whom_an_objection_keeps_out_neither_sees_nor_decides_what_is_blind(self, bare_port) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        bare_port.blind_objection = lambda project, user: "seen" if user == desk.reviewer else ""
        assert not desk.waiting
        with pytest.raises(NotAllowedError, match="seen"):
            desk.adjudicate("cat")
        assert disagreements(desk.project, desk.people[0]).count() == 1
        open_ = Desk(blind=False)
        open_.answer("cat", "dog", "emu")
        assert open_.waiting


class TestEnding:
    def test_giving_up_ends_all_slots_and_leaves_no_label(self, bare_port) -> None:
        ended = []
        bare_port.work_item_ended = lambda work_item: ended.append(work_item)
        desk = Desk()
        desk.answer("cat")
        desk.skip(desk.people[1])
        assert not queue.stuck_items(desk.project).exists()
        desk.skip(desk.people[2])
        work_item = queue.stuck_items(desk.project).get()  # one row, although two slots wait
        queue.give_up(work_item=work_item, actor=desk.reviewer)
        states = desk.batch.work_items.order_by("slot").values_list("state", flat=True)
        assert sorted(states) == [State.DONE, State.UNLABELABLE, State.UNLABELABLE]
        assert len(ended) == 1
        assert desk.record() is None
        assert not desk.waiting
        with pytest.raises(ConflictError, match="cannot be labelled"):
            desk.adjudicate("cat")
        assert queue.batch_progress(desk.batch).finished

    def test_nothing_ends_while_somebody_is_at_one_of_the_slots(self) -> None:
        desk = Desk()
        desk.answer("cat")
        queue.claim(project=desk.project, user=desk.people[1])
        work_item = desk.batch.work_items.filter(state=State.OPEN).get()
        for decide in (queue.give_up, queue.ask_no_more):
            with pytest.raises(ConflictError):
                decide(work_item=work_item, actor=desk.reviewer)
        assert desk.batch.work_items.filter(state=State.OPEN).count() == 1

    def test_with_too_few_people_an_item_is_stuck_and_the_answers_given_can_be_enough(self) -> None:
        desk = Desk(people=2)
        desk.answer("cat", "cat")
        work_item = queue.stuck_items(desk.project).get()
        assert queue.batch_progress(desk.batch).stuck == 1
        assert desk.record() is None
        queue.ask_no_more(work_item=work_item, actor=desk.reviewer)
        assert desk.record() == "cat"
        assert queue.batch_progress(desk.batch).finished

    def test_enough_answers_that_differ_go_to_the_reviewer(self) -> None:
        desk = Desk(people=2)
        desk.answer("cat", "dog")
        queue.ask_no_more(work_item=queue.stuck_items(desk.project).get(), actor=desk.reviewer)
        assert desk.waiting == [desk.items[0].pk]
        assert desk.adjudicate("emu").value == "emu"

    def test_without_an_answer_there_are_not_enough(self) -> None:
        desk = Desk(people=1)
        with pytest.raises(ConflictError, match="Nobody has answered"):
            queue.ask_no_more(work_item=desk.batch.work_items.first(), actor=desk.reviewer)

    def test_asking_again_clears_the_skips_of_all_slots(self) -> None:
        desk = Desk()
        for user in desk.people:
            desk.skip(user)
        queue.ask_again(work_item=queue.stuck_items(desk.project).get(), actor=desk.reviewer)
        desk.answer("cat", "cat", "cat")
        assert desk.record() == "cat"


class TestDawidSkene:
    def test_it_settles_what_has_no_majority(self) -> None:
        desk = Desk(items=40, overlap=2, people=2, blind=False)
        truth = {item.pk: random.Random(item.pk).choice(("cat", "dog", "emu")) for item in desk.items}
        good, _ = desk.people
        for user in desk.people:
            while task := queue.claim(project=desk.project, user=user):
                right = user == good or task.item.pk % 3
                desk.keys += 1
                queue.submit(
                    user=user,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=truth[task.item.pk] if right else "cat",
                    idempotency_key=f"k{desk.keys}",
                )
        differ = len(desk.waiting)
        assert differ
        assert queue.settle_batch_by_dawid_skene(desk.batch) == differ
        assert not desk.waiting
        assert set(Settlement.objects.values_list("method", flat=True)) == {"majority", "dawid_skene"}
        assert queue.batch_progress(desk.batch).finished
        assert queue.settle_batch_by_dawid_skene(desk.batch) == 0

    def test_it_may_not_settle_what_is_blind(self) -> None:
        desk = Desk()
        desk.answer("cat", "dog", "emu")
        with pytest.raises(ConflictError, match="blind"):
            queue.settle_batch_by_dawid_skene(desk.batch)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_every_item_has_one_right_label_of_record(seed) -> None:
    """Answers, skips, corrections, decisions in any order; then the records against a recount."""
    chance = random.Random(seed)
    desk = Desk(items=12, overlap=chance.choice((2, 3)), people=4, share="0.6")
    for _ in range(250):
        user = chance.choice(desk.people)
        event = chance.random()
        if event < 0.6:
            if queue.claim(project=desk.project, user=user) is not None:
                value = chance.choice(("cat", "cat", "dog", "emu"))
                desk.skip(user) if chance.random() < 0.2 else desk.submit(user, value)
        elif event < 0.8:
            labels = Label.objects.filter(annotator=user, superseded_by__isnull=True)
            if label := labels.order_by("?").first():
                desk.correct(label, chance.choice(("cat", "dog", "emu")))
        elif event < 0.9:
            if row := disagreements(desk.project, desk.reviewer).first():
                value = chance.choice(("cat", "dog", "emu"))
                queue.adjudicate(batch=desk.batch, item=row.item, actor=desk.reviewer, value=value)
        elif row := queue.stuck_items(desk.project).first():
            decide = chance.choice((queue.give_up, queue.ask_again, queue.ask_no_more))
            try:
                decide(work_item=row, actor=desk.reviewer)
            except ConflictError:
                assert decide is queue.ask_no_more or row.state != State.OPEN
    found = record_values(desk.project, [item.pk for item in desk.items])
    counted = 0
    for item in desk.items:
        states = list(desk.batch.work_items.filter(item=item).values_list("state", flat=True))
        answers = answers_of(desk.batch, item)
        annotators = [label.annotator_id for label in answers]
        assert len(annotators) == len(set(annotators)) == states.count(State.DONE)
        ended = not {State.OPEN, State.LEASED, State.UNLABELABLE} & set(states)
        expected = None
        if len(states) == 1:
            expected = answers[0].value if answers else None
        elif ended:
            values = [label.value for label in answers]
            expected = next((value for value in values if 2 * values.count(value) > len(values)), None)
            if expected is None:
                decided = Settlement.objects.filter(item=item).order_by("version").last()
                expected = decided and decided.value
                assert decided is None or decided.value is None or decided.method == Method.ADJUDICATED
        assert (found[item.pk].value if item.pk in found else None) == expected
        counted += expected is not None
    assert ((progress := queue.batch_progress(desk.batch)).items, progress.settled) == (12, counted)
    assert progress.disagreeing == disagreements(desk.project, desk.reviewer).count()


@pytest.mark.sqlite
def test_counting_what_waits_does_not_read_all_labels_of_a_person_for_each_item() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("Steps are counted by SQLite.")

    def steps(items: int) -> int:
        """Of the database, in thousands."""
        desk = Desk(items=items, overlap=2, people=2)
        work = WorkItem.objects.filter(batch=desk.batch, slot=0)
        Label.objects.bulk_create(
            Label(
                item_id=row.item_id,
                work_item=row,
                annotator=desk.people[0],
                value="cat",
                idempotency_key=f"k{row.pk}",
            )
            for row in work
        )
        work.update(state=State.DONE)
        counted = [0]

        def count() -> int:
            counted[0] += 1
            return 0

        connection.connection.set_progress_handler(count, 1000)
        assert waiting_for(desk.project, desk.people[0]) == 0
        connection.connection.set_progress_handler(None, 0)
        return counted[0]

    assert steps(1600) < 8 * steps(400)
