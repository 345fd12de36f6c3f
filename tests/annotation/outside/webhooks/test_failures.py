"""Messages that are not taken: tried again, refused addresses, addresses that are switched off."""

import json
import threading

import pytest
from django.utils import timezone
from django.utils.translation import override
from standardwebhooks.webhooks import Webhook as Verifier

from annotation.errors import ConflictError, InputError
from annotation.outside.webhooks import manage as service, sending
from tests.annotation.outside.webhooks.acts import State, come, happens, only
from tests.webhook_receiver import Say


class TestRetries:
    @pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
    def test_a_refusal_is_tried_again_and_said(self, make, project, receiver, status) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(Say(status, body=b"the secret of another server"))
        assert sending.send_due(webhook.pk) == 0
        delivery = only(webhook)
        assert (delivery.state, delivery.status) == (State.PENDING, status)
        assert f"status {status}" in delivery.error
        assert "secret" not in delivery.error
        assert delivery.next_attempt_at > timezone.now()
        assert sending.send_due(webhook.pk) == 0
        assert len(receiver.received) == 1  # not before its time
        come(webhook)
        assert sending.send_due(webhook.pk) == 1
        webhook.refresh_from_db()
        assert (webhook.failing_since, webhook.not_before) == (None, None)
        assert only(webhook).error == ""

    def test_the_pauses_grow_and_after_a_day_it_has_failed(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        waited, attempts = 0.0, 0
        while only(webhook).state == State.PENDING:
            receiver.script(400)
            began = timezone.now()
            sending.send_due(webhook.pk)
            attempts += 1
            if only(webhook).state == State.PENDING:
                spent = (timezone.now() - began).total_seconds()
                pause = (only(webhook).next_attempt_at - began).total_seconds()
                assert pause >= sending.PAUSES[attempts - 1] * 0.9
                assert pause <= sending.PAUSES[attempts - 1] * 1.1 + spent
                waited += pause
                come(webhook, pause + 1)
        assert attempts == len(sending.PAUSES) + 1 == len(receiver.received)
        assert 20 * 3600 < waited < 28 * 3600
        assert only(webhook).state == State.FAILED
        assert len({request.headers["webhook-id"] for request in receiver.received}) == 1

    def test_an_address_that_is_away_is_asked_about_one_message_at_a_time(
        self, make, project, receiver
    ) -> None:
        webhook, _ = make()
        for _time in range(3):
            happens(project)
        receiver.script(500)
        sending.send_due(webhook.pk)
        assert len(receiver.received) == 1
        assert sending.send_due(webhook.pk) == 0
        assert len(receiver.received) == 1
        come(webhook)
        assert sending.send_due(webhook.pk) == 3

    def test_one_message_that_is_refused_holds_up_no_other(self, make, project, receiver) -> None:
        webhook, _ = make()
        for _time in range(3):
            happens(project)
        receiver.script(400)
        assert sending.send_due(webhook.pk) == 2

    def test_it_waits_as_long_as_it_is_asked_to(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(Say(503, (("Retry-After", "600"),)))
        sending.send_due(webhook.pk)
        webhook.refresh_from_db()
        assert (only(webhook).next_attempt_at - timezone.now()).total_seconds() > 590
        assert (webhook.not_before - timezone.now()).total_seconds() > 590

    def test_no_answer_in_time_is_a_failure(self, make, project, receiver, monkeypatch) -> None:
        monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 0.2)
        webhook, _ = make()
        happens(project)
        done = threading.Event()
        receiver.script(lambda: done.wait(60))
        sending.send_due(webhook.pk)
        done.set()
        assert only(webhook).status is None
        assert "in time" in only(webhook).error

    def test_nobody_at_the_address_is_a_failure(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.__exit__()
        sending.send_due(webhook.pk)
        assert only(webhook).state == State.PENDING
        assert "Nobody accepts connections" in only(webhook).error
        with override("fr"):
            assert "Personne n’accepte" in only(webhook).error_in_words

    def test_an_answer_that_refuses_is_told_in_the_language_of_the_reader(
        self, make, project, receiver
    ) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(410)
        with override("fr"):  # whatever the worker speaks
            sending.send_due(webhook.pk)
        webhook.refresh_from_db()
        message = webhook.deliveries.get()
        assert (message.error, webhook.off_reason) == (
            "The webhook was switched off.",
            "It answered that it is gone for good (status 410).",
        )
        with override("fr"):
            assert message.error_in_words not in ("", message.error)
            assert webhook.off_reason_in_words not in ("", webhook.off_reason)

    @pytest.mark.parametrize(
        "say",
        [
            Say(body=b"x" * (sending.MOST_SKIPPED_BYTES + 1)),
            Say(204, body=b"x" * 2**20),
            Say(headers=(("Content-Encoding", "gzip"),), body=b"no gzip"),
            Say(headers=(("Content-Encoding", "br"),), body=b"what nobody asked for"),
        ],
    )
    def test_the_status_decides_whatever_else_is_answered(self, make, project, receiver, say) -> None:
        webhook, _ = make()
        happens(project)
        happens(project)
        receiver.script(say, say)
        assert sending.send_due(webhook.pk) == 2
        assert {row.state for row in webhook.deliveries.all()} == {State.DELIVERED}
        assert len(receiver.received) == 2

    def test_a_long_refusal_is_told_by_its_status(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(Say(503, (("Retry-After", "600"),), b"x" * 2**20))
        sending.send_due(webhook.pk)
        webhook.refresh_from_db()
        assert only(webhook).status == 503
        assert (webhook.not_before - timezone.now()).total_seconds() > 590


class TestAddresses:
    def test_a_redirect_is_not_followed(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(Say(307, (("Location", f"http://127.0.0.1:{receiver.port}/elsewhere"),)))
        sending.send_due(webhook.pk)
        assert [request.path for request in receiver.received] == ["/hook"]
        assert "not followed" in only(webhook).error

    @pytest.mark.parametrize(
        "url", ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://localhost/", "ftp://x.org/", ""]
    )
    def test_an_address_inside_is_refused_when_it_is_entered(self, make, url) -> None:
        with pytest.raises(InputError) as caught:
            make(url=url)
        assert caught.value.where == "url"

    def test_and_when_it_is_asked(self, make, project, receiver, settings) -> None:
        webhook, _ = make()
        happens(project)
        settings.HYPAC_PRIVATE_HOSTS = ()
        sending.send_due(webhook.pk)
        assert receiver.received == []
        assert "HYPAC_PRIVATE_HOSTS" in only(webhook).error

    def test_what_is_wrong_is_named(self, make, project) -> None:
        for fields, where in (
            ({"events": []}, "events"),
            ({"events": ["run.exploded"]}, "events"),
            ({"description": "x" * 201}, "description"),
        ):
            with pytest.raises(InputError) as caught:
                make(**fields)
            assert caught.value.where == where

    def test_a_project_has_so_many_at_most(self, make, monkeypatch) -> None:
        monkeypatch.setattr(service, "MOST", 1)
        make()
        with pytest.raises(ConflictError):
            make()


class TestSwitchedOff:
    def test_an_address_that_fails_for_days_is_switched_off(self, make, project, receiver) -> None:
        webhook, _ = make()
        for _day in range(4):
            happens(project)
            receiver.script(*[400] * 10)
            sending.send_due(webhook.pk)
            come(webhook)
        sending.send_due(webhook.pk)
        webhook.refresh_from_db()
        assert not webhook.is_active
        assert "3 days" in webhook.off_reason
        assert not webhook.deliveries.filter(state=State.PENDING).exists()
        happens(project)
        assert not webhook.deliveries.filter(state=State.PENDING).exists()

    def test_one_that_says_that_it_is_gone_at_once(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(410)
        sending.send_due(webhook.pk)
        webhook.refresh_from_db()
        assert not webhook.is_active
        assert "410" in webhook.off_reason
        assert only(webhook).state == State.FAILED

    def test_switched_on_again_it_starts_afresh(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        receiver.script(410)
        sending.send_due(webhook.pk)
        service.update_webhook(webhook=webhook, actor=project.created_by, is_active=True)
        assert (webhook.is_active, webhook.off_reason, webhook.failing_since) == (True, "", None)
        happens(project)
        assert sending.send_due(webhook.pk) == 1

    def test_a_test_and_a_redelivery_go_out_all_the_same(self, make, project, receiver) -> None:
        webhook, secret = make()
        happens(project)
        service.update_webhook(webhook=webhook, actor=project.created_by, is_active=False)
        assert only(webhook).state == State.FAILED
        service.redeliver(delivery=only(webhook), actor=project.created_by)
        service.send_test(webhook=webhook, actor=project.created_by)
        assert sending.send_due(webhook.pk) == 2
        types = [json.loads(request.body)["type"] for request in receiver.received]
        assert sorted(types) == ["run.completed", "webhook.test"]
        assert Verifier(secret).verify(receiver.received[0].body, receiver.received[0].headers)

    def test_a_redelivery_is_the_same_message(self, make, project, receiver) -> None:
        webhook, _ = make()
        happens(project)
        with pytest.raises(ConflictError):
            service.redeliver(delivery=only(webhook), actor=project.created_by)
        sending.send_due(webhook.pk)
        service.redeliver(delivery=only(webhook), actor=project.created_by)
        sending.send_due(webhook.pk)
        first, second = receiver.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
