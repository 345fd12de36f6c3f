"""Items held ahead of the one that somebody labels, and how many a person may label at all."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.labelling import leases, queries as work, queue
from annotation.labelling.next_item import available_work_items
from annotation.labelling.page import why_not_mine
from annotation.labelling.queries import annotator_pace, waiting_for
from annotation.models import Membership, WorkItem
from testbed.factories import make_items

pytestmark = pytest.mark.database

State = WorkItem.State


def ahead(desk, user=None, holding=()) -> list[queue.LeasedItem]:
    return queue.claim_ahead(project=desk.project, user=user or desk.ann, holding=holding)


def ids(tasks: list[queue.LeasedItem]) -> list[int]:
    return [task.work_item.pk for task in tasks]


class TestAhead:
    def test_nobody_holds_more_than_one_and_the_few_behind_it(self, make_desk) -> None:
        desk = make_desk(items=10)
        first = desk.claim()
        tasks = ahead(desk)
        assert ids(tasks)[0] == first.work_item.pk
        assert len(tasks) == 1 + queue.MAX_AHEAD
        assert ids(ahead(desk)) == ids(tasks)
        assert WorkItem.objects.filter(state=State.LEASED).count() == 1 + queue.MAX_AHEAD
        assert ahead(desk, holding=ids(tasks)) == []

    def test_each_answer_makes_room_for_one_more(self, make_desk) -> None:
        desk = make_desk(items=10)
        tasks = ahead(desk)
        desk.submit(tasks[0])
        more = ahead(desk, holding=ids(tasks))
        assert len(more) == 1
        assert not set(ids(more)) & set(ids(tasks))

    def test_a_reload_shows_the_item_that_was_handed_out_first(self, make_desk) -> None:
        desk = make_desk(items=5)
        tasks = ahead(desk)
        urgent = make_items(desk.project, 1)
        queue.create_batch(project=desk.project, item_ids=[urgent[0].pk], blind=False, priority=0, entropy=1)
        desk.submit(tasks[0])
        later = ahead(desk)
        assert ids(later)[:2] == ids(tasks)[1:]
        assert later[-1].item == urgent[0]
        for _ in range(3):
            assert desk.claim().work_item == tasks[1].work_item
            assert ids(ahead(desk)) == ids(later)

    def test_a_heartbeat_of_all_in_their_order_keeps_the_order(self, make_desk) -> None:
        desk = make_desk(items=5)
        tasks = ahead(desk)
        for task in tasks:
            queue.heartbeat(user=desk.ann, work_item_id=task.work_item.pk, token=task.token)
        assert ids(ahead(desk)) == ids(tasks)

    def test_what_is_held_ahead_and_not_renewed_goes_to_others(self, make_desk, monkeypatch) -> None:
        """A page that renews what it shows alone, or is gone, keeps nothing for ever."""
        desk = make_desk(items=5)
        tasks = ahead(desk)
        begun = timezone.now()
        for minutes in range(5, 21, 5):  # the lease of the project takes 15
            now = begun + timedelta(minutes=minutes)
            monkeypatch.setattr(leases, "database_time", lambda now=now: now)
            queue.heartbeat(user=desk.ann, work_item_id=tasks[0].work_item.pk, token=tasks[0].token)
        assert set(ids(ahead(desk, desk.ben))) == set(ids(tasks)[1:]) | {ids(ahead(desk, desk.ben))[-1]}
        late = {"user": desk.ann, "work_item_id": tasks[1].work_item.pk, "token": tasks[1].token}
        with pytest.raises(ConflictError):
            queue.heartbeat(**late)
        with pytest.raises(ConflictError, match="went to somebody else"):
            queue.submit(**late, value="cat", idempotency_key="late")
        assert ids(ahead(desk))[0] == tasks[0].work_item.pk

    def test_asking_for_more_renews_what_is_held_only_now_and_then(self, make_desk, monkeypatch) -> None:
        desk = make_desk(items=5)
        ends = [task.expires_at for task in ahead(desk)]
        assert [task.expires_at for task in ahead(desk)] == ends
        later = timezone.now() + timedelta(minutes=1)
        monkeypatch.setattr(leases, "database_time", lambda: later)
        renewed = [task.expires_at for task in ahead(desk)]
        assert renewed == sorted(renewed)
        assert min(renewed) > max(ends)

    def test_two_people_never_hold_the_same(self, make_desk) -> None:
        desk = make_desk(items=5)
        mine, theirs = ahead(desk), ahead(desk, desk.ben)
        assert (len(mine), len(theirs)) == (3, 2)
        assert not set(ids(mine)) & set(ids(theirs))

    def test_what_a_person_holds_is_not_asked_of_them_a_second_time(self, make_desk) -> None:
        desk = make_desk(items=2)
        WorkItem.objects.bulk_create(
            WorkItem(batch=desk.batch, item=item, slot=1, order=index, priority=1)
            for index, item in enumerate(desk.items)
        )
        tasks = ahead(desk)
        assert len({task.item.pk for task in tasks}) == len(tasks) == 2
        assert available_work_items(desk.batch, desk.ann).filter(state=State.OPEN).count() == 0

    def test_all_of_them_go_back_at_once(self, make_desk) -> None:
        desk = make_desk(items=5)
        ahead(desk)
        assert queue.release_all(project=desk.project, user=desk.ann) == 3

    def test_what_is_held_of_a_blind_batch_goes_back_when_something_stands_against_it(
        self, make_desk, bare_port
    ) -> None:
        desk = make_desk(items=5)
        ahead(desk)
        bare_port.blind_objection = lambda project, user: "You have seen predictions."
        assert ahead(desk) == []
        assert not WorkItem.objects.filter(state=State.LEASED).exists()


class TestLimits:
    @pytest.mark.parametrize("limit", ["max_labels", "max_per_day"])
    def test_nobody_is_given_more_items_than_they_may_label(self, make_desk, limit) -> None:
        desk = make_desk(items=5)
        Membership.objects.filter(user=desk.ann).update(**{limit: 2})
        assert waiting_for(desk.project, desk.ann) == 2
        tasks = ahead(desk)
        assert len(tasks) == 2
        label = desk.submit(tasks[0])
        queue.correct(user=desk.ann, label_id=label.pk, value="dog", idempotency_key="c")
        assert desk.claim().work_item == tasks[1].work_item
        desk.submit(tasks[1])
        assert queue.claim(project=desk.project, user=desk.ann) is None
        assert waiting_for(desk.project, desk.ann) == 0
        words = why_not_mine(desk.project, desk.ann)
        assert "2 items" in words
        assert ("today" in words) == (limit == "max_per_day")
        assert desk.claim(desk.ben)

    def test_another_day_is_another_count(self, make_desk, monkeypatch) -> None:
        desk = make_desk(items=5)
        Membership.objects.filter(user=desk.ann).update(max_per_day=1)
        desk.submit(desk.claim())
        assert queue.claim(project=desk.project, user=desk.ann) is None
        tomorrow = timezone.now() + timedelta(days=1)
        monkeypatch.setattr(timezone, "now", lambda: tomorrow)
        assert desk.claim()

    def test_what_somebody_holds_they_may_finish(self, make_desk) -> None:
        desk = make_desk(items=5)
        tasks = ahead(desk)
        Membership.objects.filter(user=desk.ann).update(max_labels=1)
        for task in tasks:
            desk.submit(task)
        assert queue.claim(project=desk.project, user=desk.ann) is None


class TestPace:
    def test_of_the_last_session(self, make_desk, monkeypatch) -> None:
        desk = make_desk(items=12)
        now = timezone.now()
        # Two before a long pause, then six labels, one each half minute.
        moments = [now - timedelta(hours=3)] * 2 + [now - timedelta(seconds=30 * n) for n in range(5, -1, -1)]
        for number, moment in enumerate(moments, 1):
            monkeypatch.setattr(timezone, "now", lambda moment=moment: moment)
            task = desk.claim()
            queue.submit(
                user=desk.ann,
                work_item_id=task.work_item.pk,
                token=task.token,
                value="cat",
                idempotency_key=str(number),
                lead_time_ms=1000 * number,
            )
        pace = annotator_pace(desk.project, desk.ann)
        assert (pace.total, pace.per_hour, pace.median_seconds) == (8, 120, 5.5)

    def test_is_not_told_from_labels_of_another_program(self, make_desk) -> None:
        desk = make_desk(items=12)
        for item in list(desk.project.items.all())[:8]:
            queue.store_given(batch=desk.batch, user=desk.ann, item_id=item.pk, value="cat")
        pace = annotator_pace(desk.project, desk.ann)
        assert (pace.total, pace.per_hour) == (8, None)

    def test_is_not_told_from_a_few_labels(self, desk) -> None:
        desk.submit(desk.claim())
        pace = annotator_pace(desk.project, desk.ann)
        assert (pace.today, pace.per_hour, pace.median_seconds) == (1, None, None)


def test_how_many_wait_is_exact_for_few_and_a_moment_old_for_many(make_desk, monkeypatch) -> None:
    desk = make_desk(items=5)
    monkeypatch.setattr(work, "OPEN_EXACTLY", 3)
    assert waiting_for(desk.project, desk.ben) == 5
    desk.submit(desk.claim())
    assert waiting_for(desk.project, desk.ben) == 5
    cache.clear()
    assert waiting_for(desk.project, desk.ben) == 4
    cache.clear()
    desk.submit(desk.claim())
    assert waiting_for(desk.project, desk.ben) == 3
    desk.submit(desk.claim())
    assert waiting_for(desk.project, desk.ben) == 2
