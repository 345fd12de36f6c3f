"""Claiming, answering and skipping, by one request after the other."""

import hashlib
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import leases, queue
from annotation.labelling.queries import waiting_for
from annotation.models import AuditEvent, Draft, Label, Skip, WorkItem
from annotation.people.members import change_role, remove_member
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = pytest.mark.database

State = WorkItem.State


def state_of(task: queue.LeasedItem) -> str:
    return WorkItem.objects.get(pk=task.work_item.pk).state


class TestClaim:
    def test_a_reload_and_a_second_tab_show_the_same_item_with_the_same_token(self, desk) -> None:
        first = desk.claim()
        later = timezone.now() + timedelta(minutes=2)
        WorkItem.objects.filter(state=State.LEASED).update(lease_expires_at=later)
        second = desk.claim()
        assert (second.work_item, second.token) == (first.work_item, first.token)
        assert second.expires_at > later
        assert WorkItem.objects.filter(state=State.LEASED).count() == 1

    def test_nothing_is_handed_out_that_another_window_gave_back_meanwhile(self, desk, monkeypatch) -> None:
        hold = leases._renew_and_fill
        given_back = []

        def hold_and_lose(project, user, count) -> list[int]:
            ids = hold(project, user, count)
            if not given_back:
                given_back.append(queue.release_all(project=project, user=user))
            return ids

        monkeypatch.setattr(leases, "_renew_and_fill", hold_and_lose)
        task = desk.claim(desk.ann)
        assert given_back == [1]
        assert task.token == WorkItem.objects.get(leased_to=desk.ann).lease_token != ""
        given_back.clear()
        assert queue.claim_ahead(project=desk.project, user=desk.ann) == []
        assert given_back == [3]

    def test_two_people_get_two_items(self, desk) -> None:
        assert desk.claim(desk.ann).item != desk.claim(desk.ben).item

    def test_the_order_is_random_and_comes_from_the_entropy_alone(self, make_desk) -> None:
        desk = make_desk(items=30)
        ids = [item.pk for item in desk.items]
        again = queue.create_batch(
            project=desk.project, item_ids=reversed(ids), blind=True, priority=1, entropy=7
        )
        other = queue.create_batch(project=desk.project, item_ids=ids, blind=True, priority=1, entropy=8)
        orders = [
            list(batch.work_items.order_by("order").values_list("item_id", flat=True))
            for batch in (desk.batch, again, other)
        ]
        assert orders[0] == orders[1]
        assert orders[0] != orders[2]
        assert orders[0] != ids

    def test_a_place_is_the_hash_of_the_entropy_and_the_items_id(self, desk) -> None:
        """What was drawn once is drawn again, by every version."""
        for work_item in desk.batch.work_items.all():
            digest = hashlib.sha256(f"7:{work_item.item_id}".encode()).digest()
            assert work_item.order == int.from_bytes(digest[:8]) >> 1

    def test_priority_comes_first(self, desk) -> None:
        urgent = make_items(desk.project, 1)
        queue.create_batch(project=desk.project, item_ids=[urgent[0].pk], blind=False, priority=0, entropy=1)
        assert desk.claim().item == urgent[0]

    def test_nothing_to_do(self, make_desk) -> None:
        desk = make_desk(items=1)
        desk.claim(desk.ben)
        assert queue.claim(project=desk.project, user=desk.ann) is None

    def test_an_expired_lease_goes_to_another_person(self, make_desk) -> None:
        desk = make_desk(items=1)
        late = desk.claim(desk.ann)
        desk.expire(late)
        taken = desk.claim(desk.ben)
        assert taken.work_item == late.work_item
        assert taken.token != late.token

    @pytest.mark.parametrize("role", ["viewer", None])
    def test_who_may_not_label_gets_nothing(self, desk, role) -> None:
        user = add_member(desk.project, role) if role else make_user("stranger")
        with pytest.raises(NotAllowedError):
            queue.claim(project=desk.project, user=user)

    def test_an_item_that_two_batches_ask_for_is_with_one_person_at_a_time(self, make_desk) -> None:
        desk = make_desk(items=1)
        queue.create_batch(
            project=desk.project, item_ids=[desk.items[0].pk], blind=False, priority=5, entropy=1
        )
        desk.claim(desk.ann)
        assert queue.claim(project=desk.project, user=desk.ben) is None
        lease = {"state": State.LEASED, "leased_to": desk.ben, "lease_token": "t"}
        with pytest.raises(IntegrityError), transaction.atomic():
            WorkItem.objects.filter(state=State.OPEN).update(lease_expires_at=timezone.now(), **lease)

    def test_items_of_another_project_and_items_given_twice_are_refused(self, desk) -> None:
        stranger, mine = make_items(make_project(), 1)[0].pk, desk.items[0].pk
        for ids in ([stranger], [mine, stranger], [mine, mine], [mine, stranger + 1_000]):
            with pytest.raises(InputError, match="not of this project"):
                queue.create_batch(project=desk.project, item_ids=ids, blind=False, priority=1, entropy=1)
        assert list(desk.project.work_batches.all()) == [desk.batch]

    def test_a_blind_batch_is_kept_from_whom_something_stands_against(self, desk, bare_port) -> None:
        held = desk.claim(desk.ann)
        bare_port.blind_objection = lambda project, user: (
            "You have seen predictions." if user == desk.ann else ""
        )
        with pytest.raises(NotAllowedError, match="seen predictions"):
            desk.submit(held)
        assert queue.claim(project=desk.project, user=desk.ann) is None
        assert state_of(held) == State.OPEN  # what she held has gone back
        assert waiting_for(desk.project, desk.ann) == 0
        assert waiting_for(desk.project, desk.ben) == 3
        assert desk.claim(desk.ben)

    def test_another_batch_is_not_blind(self, make_desk, bare_port) -> None:
        desk = make_desk(blind=False)
        bare_port.blind_objection = lambda project, user: "no"
        assert desk.submit(desk.claim()).value == "cat"


class TestLease:
    def test_a_heartbeat_renews_and_an_old_token_does_not(self, desk) -> None:
        task = desk.claim()
        renewed = queue.heartbeat(user=desk.ann, work_item_id=task.work_item.pk, token=task.token)
        assert renewed > task.expires_at
        for user, token in ((desk.ann, "old"), (desk.ben, task.token), (desk.ann, "")):
            with pytest.raises(ConflictError):
                queue.heartbeat(user=user, work_item_id=task.work_item.pk, token=token)

    def test_who_holds_an_item_no_more_is_told_why_and_nobody_else(self, desk) -> None:
        task = desk.claim()
        held = {"work_item_id": task.work_item.pk, "token": task.token}

        def why(user, **changes) -> str:
            with pytest.raises(ConflictError) as caught:
                queue.heartbeat(user=user, **{**held, **changes})
            with pytest.raises(ConflictError) as skipped:
                queue.skip(user=user, **{**held, **changes}, reason="other")
            assert skipped.value.message == caught.value.message
            return caught.value.message

        never = why(desk.ben)
        assert "never given to you" in never
        assert why(desk.ann, token="made up") == never
        queue.release(user=desk.ann, **held)
        assert "do not hold" in why(desk.ann)
        theirs = desk.claim(desk.ben)
        assert theirs.work_item == task.work_item
        assert "went to somebody else" in why(desk.ann)
        desk.submit(theirs, user=desk.ben)
        assert "Somebody else has labelled" in why(desk.ann)
        assert why(desk.ann, token="made up") == never
        own = desk.claim()
        desk.submit(own)
        assert "labelled this item already" in why(desk.ann, work_item_id=own.work_item.pk, token=own.token)

    def test_release_gives_the_item_back_once(self, desk) -> None:
        task = desk.claim()
        arguments = {"user": desk.ann, "work_item_id": task.work_item.pk, "token": task.token}
        assert queue.release(**arguments) is True
        assert queue.release(**arguments) is False
        assert desk.claim(desk.ben).work_item == task.work_item

    def test_removing_a_member_frees_what_they_hold_and_keeps_their_labels(self, desk) -> None:
        label = desk.submit(desk.claim())
        task = desk.claim()
        remove_member(project=desk.project, actor=desk.ben, user=desk.ann)
        assert state_of(task) == State.OPEN
        assert Label.objects.get() == label
        with pytest.raises(ConflictError):
            desk.submit(task)

    def test_a_role_that_may_not_label_frees_what_they_hold(self, desk) -> None:
        task = desk.claim()
        change_role(project=desk.project, actor=desk.ben, user=desk.ann, role="reviewer")
        assert state_of(task) == State.LEASED
        change_role(project=desk.project, actor=desk.ben, user=desk.ann, role="viewer")
        assert state_of(task) == State.OPEN


class TestSubmit:
    def test_a_label_ends_the_work_item(self, desk, bare_port) -> None:
        heard = []
        bare_port.label_stored = lambda label, replaced: heard.append((label, replaced))
        task = desk.claim()
        label = desk.submit(task, "dog")
        assert (label.value, label.version, label.annotator, label.item) == ("dog", 1, desk.ann, task.item)
        assert state_of(task) == State.DONE
        assert heard == [(label, None)]
        assert list(task.work_item.labels.all()) == [label]

    def test_sent_twice_it_makes_one_label(self, desk) -> None:
        task = desk.claim()
        assert desk.submit(task, key="k") == desk.submit(task, key="k")
        assert Label.objects.count() == 1
        assert not Draft.objects.exists()

    def test_the_same_key_with_another_answer_is_refused(self, desk) -> None:
        task = desk.claim()
        desk.submit(task, "cat", key="k")
        with pytest.raises(ConflictError, match="another answer"):
            desk.submit(task, "dog", key="k")
        with pytest.raises(ConflictError, match="another answer"):
            desk.submit(desk.claim(), "cat", key="k")
        assert Label.objects.count() == 1

    def test_a_key_is_a_persons_own(self, desk) -> None:
        desk.submit(desk.claim(desk.ann), key="k")
        desk.submit(desk.claim(desk.ben), user=desk.ben, key="k")
        assert Label.objects.count() == 2

    def test_a_late_answer_is_refused_and_kept_as_a_draft(self, make_desk) -> None:
        desk = make_desk(items=1)
        late = desk.claim(desk.ann)
        desk.expire(late)
        now = desk.claim(desk.ben)
        with pytest.raises(ConflictError, match=r"somebody else.*kept as a draft"):
            desk.submit(late, "dog")
        assert not Label.objects.exists()
        queue.release(user=desk.ben, work_item_id=now.work_item.pk, token=now.token)
        again = desk.claim(desk.ann)
        assert again.draft_value == "dog"
        desk.submit(again, "cat")
        assert not Draft.objects.exists()

    def test_an_answer_to_what_one_never_held_is_not_kept(self, make_desk) -> None:
        desk = make_desk(items=2)
        mine, theirs = desk.claim(desk.ann), desk.claim(desk.ben)
        # No token, one that was made up, one of another item, and one that somebody else was given.
        for token in ("", "0" * 32, mine.token, theirs.token):
            with pytest.raises(ConflictError, match="never given to you"):
                queue.submit(
                    user=desk.ann,
                    work_item_id=theirs.work_item.pk,
                    token=token,
                    value="cat",
                    idempotency_key="k",
                )
        assert not Draft.objects.exists()
        assert not queue.has_seen(user=desk.ann, work_item=WorkItem.objects.get(pk=theirs.work_item.pk))

    def test_a_token_is_known_after_the_servers_key_was_changed(self, make_desk, settings) -> None:
        desk = make_desk(items=1)
        late = desk.claim(desk.ann)
        desk.expire(late)
        desk.claim(desk.ben)
        settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key " * 5
        with pytest.raises(ConflictError, match="kept as a draft"):
            desk.submit(late)
        settings.SECRET_KEY_FALLBACKS = []
        with pytest.raises(ConflictError, match="never given to you"):
            desk.submit(late)

    def test_after_expiry_it_counts_while_nobody_else_has_the_item(self, desk) -> None:
        task = desk.claim()
        desk.expire(task)
        assert desk.submit(task).item == task.item

    def test_a_withdrawn_item_takes_no_label(self, desk) -> None:
        task = desk.claim()
        assert queue.withdraw_batch(batch=desk.batch) == 3
        with pytest.raises(ConflictError, match="no longer asked for"):
            desk.submit(task)

    @pytest.mark.parametrize("value", ["bird", "", None, 1, ["cat"], "CAT", {"cat": 1}])
    def test_only_the_projects_labels_can_be_given(self, desk, value) -> None:
        task = desk.claim()
        with pytest.raises(InputError) as raised:
            desk.submit(task, value)
        assert raised.value.where == "value"
        assert state_of(task) == State.LEASED

    @pytest.mark.parametrize(
        ("field", "bad"),
        [("comment", "x" * 2001), ("comment", "\0"), ("idempotency_key", ""), ("idempotency_key", "k" * 65)],
    )
    def test_bad_fields_are_named(self, desk, field, bad) -> None:
        task = desk.claim()
        arguments = {"idempotency_key": "k", field: bad}
        with pytest.raises(InputError) as raised:
            queue.submit(
                user=desk.ann, work_item_id=task.work_item.pk, token=task.token, value="cat", **arguments
            )
        assert raised.value.where == field

    @pytest.mark.parametrize(("measured", "kept"), [(1200, 1200), (-5, None), (2**40, None), (None, None)])
    def test_a_senseless_time_is_no_reason_to_refuse(self, desk, measured, kept) -> None:
        task = desk.claim()
        label = queue.submit(
            user=desk.ann,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key="k",
            lead_time_ms=measured,
        )
        assert label.lead_time_ms == kept

    def test_a_listener_that_fails_leaves_nothing_behind(self, desk, bare_port) -> None:
        def fail(label, replaced):
            raise RuntimeError

        bare_port.label_stored = fail
        task = desk.claim()
        with pytest.raises(RuntimeError):
            desk.submit(task)
        assert not Label.objects.exists()
        assert state_of(task) == State.LEASED


class TestSkip:
    def test_a_skipped_item_goes_to_another_person(self, make_desk) -> None:
        desk = make_desk(items=1)
        task = desk.claim(desk.ann)
        desk.skip(task)
        assert queue.claim(project=desk.project, user=desk.ann) is None
        assert desk.claim(desk.ben).work_item == task.work_item

    def test_sent_twice_it_has_one_effect(self, desk) -> None:
        task = desk.claim()
        desk.skip(task)
        desk.skip(task)
        assert Skip.objects.count() == 1

    def test_what_is_not_held_cannot_be_skipped(self, desk) -> None:
        task = desk.claim(desk.ann)
        with pytest.raises(ConflictError):
            desk.skip(task, user=desk.ben)
        with pytest.raises(InputError, match="no reason"):
            desk.skip(task, reason="bored")

    def test_skipped_by_all_is_stuck_and_can_be_given_up(self, make_desk, bare_port) -> None:
        ended = []
        bare_port.work_item_ended = lambda work_item: ended.append(work_item)
        desk = make_desk(items=2)
        task = desk.claim(desk.ann)
        desk.skip(task, user=desk.ann)
        assert not queue.stuck_items(desk.project).exists()
        assert queue.batch_progress(desk.batch).stuck == 0
        held = queue.claim(project=desk.project, user=desk.ben)
        desk.skip(held, user=desk.ben)
        assert list(queue.stuck_items(desk.project)) == [task.work_item]
        progress = queue.batch_progress(desk.batch)
        assert (progress.open, progress.stuck, progress.total) == (2, 1, 2)
        given_up = queue.give_up(work_item=task.work_item, actor=desk.ben)
        assert given_up.state == State.UNLABELABLE
        assert ended == [given_up]
        assert AuditEvent.objects.filter(action="work.given_up").exists()
        with pytest.raises(ConflictError):
            queue.give_up(work_item=task.work_item, actor=desk.ben)
        with pytest.raises(ConflictError):
            queue.ask_again(work_item=task.work_item, actor=desk.ben)

    def test_a_new_member_or_asking_again_makes_it_move(self, make_desk) -> None:
        desk = make_desk(items=1)
        for user in (desk.ann, desk.ben):
            desk.skip(desk.claim(user), user=user)
        assert queue.batch_progress(desk.batch).stuck == 1
        carl = add_member(desk.project)
        assert queue.batch_progress(desk.batch).stuck == 0
        desk.skip(desk.claim(carl), user=carl)
        queue.ask_again(work_item=queue.stuck_items(desk.project).get(), actor=carl)
        assert queue.batch_progress(desk.batch).stuck == 0
        assert desk.claim(desk.ann)

    def test_whom_an_objection_keeps_out_is_not_waited_for(self, make_desk, bare_port) -> None:
        desk = make_desk(items=1)
        bare_port.blind_objection = lambda project, user: "no" if user == desk.ben else ""
        desk.skip(desk.claim(desk.ann))
        assert queue.batch_progress(desk.batch).stuck == 1

    def test_an_item_somebody_has_open_is_not_given_up(self, desk) -> None:
        task = desk.claim()
        with pytest.raises(ConflictError):
            queue.give_up(work_item=task.work_item, actor=desk.ben)
