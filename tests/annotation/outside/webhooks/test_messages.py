"""Messages to addresses of other programs: stored with what they tell, and signed."""

import json
import time
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from standardwebhooks.webhooks import Webhook as Verifier, WebhookVerificationError

from annotation.common import workers
from annotation.models import AuditEvent
from annotation.outside.secrets import decrypt
from annotation.outside.webhooks import manage as service, sending
from tests.annotation.outside.webhooks.acts import State, come, happens, only


class TestSigning:
    def test_the_reference_implementation_takes_what_is_sent(self, make, project, receiver) -> None:
        webhook, secret = make()
        happens(project)
        assert sending.send_due(webhook.pk) == 1
        (request,) = receiver.received
        said = Verifier(secret).verify(request.body, request.headers)
        assert said["type"] == "run.completed"
        assert said["data"] == {"project": project.slug, "run": 1}
        assert abs((datetime.fromisoformat(said["timestamp"]) - datetime.now(UTC)).total_seconds()) < 60
        assert request.headers["content-type"] == "application/json"
        assert request.headers["webhook-id"] == only(webhook).message_id
        delivery = only(webhook)
        assert (delivery.state, delivery.status, delivery.attempts) == (State.DELIVERED, 200, 1)
        assert delivery.duration_ms is not None

    def test_another_secret_another_body_and_an_old_time_are_found_out(self, make, project, receiver) -> None:
        webhook, secret = make()
        _, other = make()
        happens(project)
        sending.send_due(webhook.pk)
        (request,) = receiver.received
        an_hour_ago = {**request.headers, "webhook-timestamp": str(int(time.time()) - 3600)}
        for key, body, headers in (
            (other, request.body, request.headers),
            (secret, request.body + b" ", request.headers),
            (secret, request.body, an_hour_ago),
        ):
            with pytest.raises(WebhookVerificationError):
                Verifier(key).verify(body, headers)

    def test_each_attempt_is_signed_anew_under_the_same_id(
        self, make, project, receiver, monkeypatch
    ) -> None:
        webhook, secret = make()
        happens(project)
        receiver.script(500)
        sending.send_due(webhook.pk)
        come(webhook)
        later = time.time() + 200
        monkeypatch.setattr("annotation.outside.webhooks.sending.time.time", lambda: later)
        sending.send_due(webhook.pk)
        first, second = receiver.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 199
        assert Verifier(secret).verify(second.body, second.headers)

    def test_after_a_rotation_both_secrets_sign_for_a_day(self, make, project, receiver) -> None:
        webhook, old = make()
        new = service.rotate_secret(webhook=webhook, actor=project.created_by)
        assert new != old
        happens(project)
        sending.send_due(webhook.pk)
        request = receiver.received[-1]
        assert Verifier(old).verify(request.body, request.headers)
        assert Verifier(new).verify(request.body, request.headers)
        come(webhook, 25 * 3600)
        happens(project)
        sending.send_due(webhook.pk)
        request = receiver.received[-1]
        assert Verifier(new).verify(request.body, request.headers)
        with pytest.raises(WebhookVerificationError):
            Verifier(old).verify(request.body, request.headers)

    def test_the_secret_is_stored_encrypted_and_named_nowhere(self, make, project) -> None:
        webhook, secret = make()
        assert secret.startswith("whsec_")
        assert secret not in webhook.secret
        assert decrypt(webhook.secret) == secret
        trail = json.dumps(list(AuditEvent.objects.filter(project=project).values("action", "data")))
        assert "webhook.made" in trail
        assert secret[6:] not in trail


class TestStoring:
    def test_what_is_rolled_back_is_told_to_nobody(self, make, project) -> None:
        webhook, _ = make()
        with transaction.atomic():
            happens(project)
            transaction.set_rollback(True)
        assert not webhook.deliveries.exists()

    def test_workers_are_nudged_once_it_is_committed(
        self, make, project, announced, django_capture_on_commit_callbacks
    ) -> None:
        webhook, _ = make()
        with django_capture_on_commit_callbacks(execute=True):
            happens(project)
            assert announced == []
        assert announced == [webhook.pk]

    def test_only_who_wants_it_is_told(self, make, project) -> None:
        wants, _ = make(events=["run.completed"])
        other, _ = make(events=["run.routed"])
        off, _ = make()
        service.update_webhook(webhook=off, actor=project.created_by, is_active=False)
        happens(project)
        assert [hook.deliveries.count() for hook in (wants, other, off)] == [1, 0, 0]

    def test_two_addresses_are_told_under_the_same_id(self, make, project) -> None:
        first, second = make()[0], make()[0]
        happens(project)
        assert only(first).message_id == only(second).message_id

    def test_what_has_a_key_is_told_once(self, make, project) -> None:
        webhook, _ = make()
        for _time in range(2):
            happens(project, key="7")
        happens(project)
        assert webhook.deliveries.count() == 2

    def test_without_an_address_it_costs_one_query(self, project) -> None:
        with CaptureQueriesContext(connection) as queries:
            happens(project)
        assert len(queries) == 1

    def test_a_broker_that_is_down_is_asked_once_in_a_while(
        self, make, project, monkeypatch, django_capture_on_commit_callbacks
    ) -> None:
        asked = []

        def down(task: str, pk: int) -> None:
            asked.append(pk)
            raise OSError

        make()
        monkeypatch.setattr(workers, "message_workers", down)
        with django_capture_on_commit_callbacks(execute=True):
            happens(project)
            happens(project)
        assert len(asked) == 1
