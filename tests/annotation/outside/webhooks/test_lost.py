"""Workers that die, and many at once: each message is sent, at least once, as the same one."""

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from standardwebhooks.webhooks import Webhook as Verifier

from annotation.common import events
from annotation.models import Webhook, WebhookDelivery
from annotation.outside.webhooks import manage as service, sending
from tests.annotation.jobs.jobs_at_work import KilledError
from tests.annotation.outside.webhooks.acts import State, come, happens, only
from tests.webhook_receiver import Received

pytestmark = [pytest.mark.database, pytest.mark.costly]


class TestLost:
    def test_a_worker_that_dies_before_it_has_stored_the_answer(
        self, make, project, receiver, monkeypatch
    ) -> None:
        webhook, _ = make()
        happens(project)

        def die(*_: object) -> None:
            raise KilledError

        with monkeypatch.context() as patched:
            patched.setattr(sending, "store_outcome", die)
            with pytest.raises(KilledError):
                sending.send_due(webhook.pk)
        assert sending.send_due(webhook.pk) == 0  # it may still be at it
        come(webhook, sending.CLAIM_SECONDS + 1)
        assert sending.send_due(webhook.pk) == 1
        first, second = receiver.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]

    def test_one_that_was_taken_for_dead_changes_nothing_any_more(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)

        def pass_on() -> None:
            row = WebhookDelivery.objects.get(webhook=webhook)
            WebhookDelivery.objects.filter(pk=row.pk).update(attempts=row.attempts + 1)

        slow = sending._claim(webhook.pk)
        pass_on()
        sending.store_outcome(slow, sending.Outcome(200, "", 5))
        assert only(webhook).state == State.PENDING

    def test_what_was_announced_to_nobody_is_announced_again(self, make, project, announced) -> None:
        webhook, _ = make()
        happens(project)
        assert sending.catch_up() == 0
        come(webhook, sending.OVERDUE_SECONDS + 1)
        assert sending.catch_up() == 1
        assert announced == [webhook.pk]

    def test_a_busy_worker_sends_what_is_overdue(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        sending.send_overdue()
        assert receiver.received == []
        come(webhook, sending.OVERDUE_SECONDS + 1)
        sending.send_overdue()
        assert len(receiver.received) == 1

    def test_a_turn_ends_and_another_worker_goes_on(self, make, project, announced, receiver) -> None:
        webhook, _ = make()
        for _time in range(3):
            happens(project)
        assert sending.send_due(webhook.pk, seconds=0) == 1
        assert announced == [webhook.pk]

    def test_what_nobody_could_send_in_time_is_given_up_and_old_messages_go(self, make, project) -> None:
        webhook, _ = make()
        happens(project)
        come(webhook, 31 * 3600)
        assert sending.give_up_old() == 1
        assert only(webhook).state == State.FAILED
        assert sending.prune() == 0
        long_ago = timezone.now() - timedelta(days=31)
        WebhookDelivery.objects.update(created_at=long_ago, finished_at=long_ago)
        happens(project)
        assert sending.prune() == 1
        assert only(webhook).state == State.PENDING

    def test_of_too_many_that_wait_the_oldest_are_given_up(self, make, project, monkeypatch) -> None:
        monkeypatch.setattr(sending, "MOST_WAITING", 3)
        monkeypatch.setattr(sending, "CHUNK", 2)
        (webhook, _), (other, _) = make(), make(events=["run.analysed"])
        for _time in range(3):
            happens(project, "run.analysed")
        sending.catch_up()  # as often as it likes
        assert sending.give_up_too_many() == 0
        for _time in range(5):
            happens(project)
        assert sending.give_up_too_many() == 5
        states = list(webhook.deliveries.order_by("pk").values_list("state", flat=True))
        assert states == [State.FAILED] * 5 + [State.PENDING] * 3
        given_up = webhook.deliveries.order_by("pk")[0]
        assert "more than 3 messages waited" in given_up.error
        assert other.deliveries.filter(state=State.PENDING).count() == 3
        service.redeliver(delivery=given_up, actor=project.created_by)  # it counts as new
        assert sending.give_up_too_many() == 1
        given_up.refresh_from_db()
        assert given_up.state == State.PENDING

    def test_it_is_looked_after_by_itself(self, make, project, monkeypatch) -> None:
        monkeypatch.setattr(sending, "MOST_WAITING", 0)
        webhook, _ = make()
        happens(project)
        cache.delete("webhooks-counted")
        sending.catch_up()
        assert only(webhook).state == State.FAILED

    def test_a_secret_that_cannot_be_read_is_said(self, make, project, receiver) -> None:
        webhook, _ = make()
        Webhook.objects.filter(pk=webhook.pk).update(secret="gAAAAA-no-such")
        happens(project)
        sending.send_due(webhook.pk)
        assert receiver.received == []
        assert "cannot be read" in only(webhook).error
        new = service.rotate_secret(webhook=webhook, actor=project.created_by)
        come(webhook)
        assert sending.send_due(webhook.pk) == 1
        request: Received = receiver.received[0]
        assert Verifier(new).verify(request.body, request.headers)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_each_message_is_sent_by_one(make, project, receiver) -> None:
    webhook, _ = make()
    for _time in range(12):
        happens(project)
    barrier = threading.Barrier(4, timeout=300)

    def work() -> None:
        barrier.wait()
        try:
            sending.send_due(webhook.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [request.headers["webhook-id"] for request in receiver.received]
    assert len(ids) == len(set(ids)) == 12


def test_of_too_many_that_ended_the_newest_are_kept(make, project, monkeypatch) -> None:
    monkeypatch.setattr(sending, "MOST_ENDED", 3)
    monkeypatch.setattr(sending, "CHUNK", 2)
    (webhook, _), (other, _) = make(), make(events=["run.analysed"])
    for _time in range(8):
        happens(project)
    for _time in range(3):
        happens(project, "run.analysed")
    rows = list(webhook.deliveries.order_by("pk").values_list("pk", flat=True))
    now = timezone.now()
    # The first was sent again and ended last; the next two wait still.
    for place, pk in enumerate([*rows[3:], rows[0]]):
        WebhookDelivery.objects.filter(pk=pk).update(
            state=State.DELIVERED, next_attempt_at=None, finished_at=now + timedelta(seconds=place)
        )
    other.deliveries.update(state=State.FAILED, next_attempt_at=None, finished_at=now)
    kept = {*rows[:3], *rows[-2:]}
    before = webhook.deliveries.count()
    assert sending.prune() == before - len(kept)
    assert set(webhook.deliveries.values_list("pk", flat=True)) == kept
    assert other.deliveries.count() == 3
    assert sending.prune() == 0


class TestAtOnce:
    """What becomes of messages about an address that is deleted or switched off at the same moment."""

    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture(autouse=True)
    def several_writers(self, db) -> None:
        if connection.vendor == "sqlite":
            pytest.skip("SQLite has one writer at a time.")

    def beside(self, work: Callable[[], object]) -> threading.Thread:
        """Something that somebody else does, in a connection of their own."""

        def run() -> None:
            try:
                work()
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def waits(self) -> None:
        """Until some connection waits for another one's lock."""
        until = time.monotonic() + 60
        with connection.cursor() as cursor:
            while time.monotonic() < until:
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                if cursor.fetchone()[0]:
                    return
                time.sleep(0.05)
        raise AssertionError("nobody waits")

    @pytest.fixture(params=["deleted", "switched off"])
    def ended(self, request, project) -> Callable[[Webhook], None]:
        def end(webhook: Webhook) -> None:
            if request.param == "deleted":
                service.delete_webhook(webhook=webhook, actor=project.created_by)
            else:
                service.update_webhook(webhook=webhook, actor=project.created_by, is_active=False)

        return end

    def test_before_the_message_is_stored(self, make, project, ended, monkeypatch) -> None:
        webhook, _ = make()
        wanted_by = events.wanted_by

        def wanted(*arguments: object) -> list[Webhook]:
            found = wanted_by(*arguments)
            self.beside(lambda: ended(webhook)).join()
            return found

        monkeypatch.setattr(events, "wanted_by", wanted)
        with transaction.atomic():
            happens(project)
        assert not WebhookDelivery.objects.exists()

    def test_before_it_is_committed(self, make, project, ended) -> None:
        webhook, _ = make()
        with transaction.atomic():
            happens(project)
            other = self.beside(lambda: ended(webhook))
            self.waits()
        other.join()
        assert not WebhookDelivery.objects.filter(state=State.PENDING).exists()

    def test_a_message_waits_while_the_address_ends(self, make, project, ended) -> None:
        webhook, _ = make()
        told: list[str] = []

        def tell() -> None:
            with transaction.atomic():
                happens(project)
            told.append("no error")

        with transaction.atomic():
            ended(webhook)
            other = self.beside(tell)
            self.waits()
        other.join()
        assert told == ["no error"]
        assert not WebhookDelivery.objects.filter(state=State.PENDING).exists()

    def test_an_address_that_is_gone_waits_for_messages_that_are_being_stored(self, make, project) -> None:
        webhook, _ = make()
        happens(project)
        delivery = sending._claim(webhook.pk)
        with transaction.atomic():
            happens(project)
            gone = sending.Outcome(sending.GONE, "It is gone.", 5)
            other = self.beside(lambda: sending.store_outcome(delivery, gone))
            self.waits()
        other.join()
        assert webhook.deliveries.filter(state=State.FAILED).count() == 2

    def test_nobody_else_waits_for_messages_that_are_being_stored(self, make, project) -> None:
        webhook, _ = make()
        for _time in range(2):
            happens(project)
        delivery, failed = sending._claim(webhook.pk), sending._claim(webhook.pk)
        WebhookDelivery.objects.filter(pk=failed.pk).update(state=State.FAILED, next_attempt_at=None)
        actor = project.created_by
        acts: list[Callable[[], object]] = [
            lambda: service.rotate_secret(webhook=webhook, actor=actor),
            lambda: service.update_webhook(webhook=webhook, actor=actor, url="https://example.org/other"),
            lambda: service.send_test(webhook=webhook, actor=actor),
            lambda: service.redeliver(delivery=failed, actor=actor),
            lambda: sending.store_outcome(delivery, sending.Outcome(500, "It is away.", 5, away=True)),
        ]
        done: list[int] = []

        def act_without_waiting() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            for place, act in enumerate(acts):
                with contextlib.suppress(OperationalError):
                    act()
                    done.append(place)

        with transaction.atomic():
            happens(project)
            self.beside(act_without_waiting).join()
        assert done == [*range(len(acts))]

    def test_a_test_is_told_from_what_is_stored_beside_it(self, make, project, monkeypatch) -> None:
        webhook, _ = make()
        store = service.store

        def store_beside(*arguments: object, **options: object) -> None:
            store(*arguments, **options)
            self.beside(lambda: happens(project)).join()

        monkeypatch.setattr(service, "store", store_beside)
        assert service.send_test(webhook=webhook, actor=project.created_by).event == events.TEST

    def test_while_what_came_of_one_is_stored(self, make, project, ended) -> None:
        webhook, _ = make()
        happens(project)
        Webhook.objects.filter(pk=webhook.pk).update(failing_since=timezone.now())
        delivery = sending._claim(webhook.pk)
        others: list[threading.Thread] = []

        def meanwhile(execute: Callable[..., object], sql: str, *arguments: object) -> object:
            done = execute(sql, *arguments)
            if sql.startswith("UPDATE") and not others:
                others.append(self.beside(lambda: ended(webhook)))
                self.waits()
            return done

        with connection.execute_wrapper(meanwhile):
            sending.store_outcome(delivery, sending.Outcome(200, "", 5))
        others[0].join()
        assert not WebhookDelivery.objects.filter(state=State.PENDING).exists()
        assert not Webhook.objects.filter(is_active=True).exists()
