"""No letter is lost where the mail server is away, and none is sent twice."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db.models import F
from django.utils import timezone

from annotation.common.mail import store_mail
from annotation.mail import sending
from annotation.mail.sending import catch_up, send_due
from annotation.models import Mail, User
from testbed.factories import make_user

pytestmark = pytest.mark.django_db
State = Mail.State


@pytest.fixture
def mail(server) -> Mail:
    user = make_user("ann")
    User.objects.filter(pk=user.pk).update(email="ann@example.org", email_confirmed_at=timezone.now())
    user.refresh_from_db()
    store_mail(kind="password", to=user.email, user=user, data={})
    return Mail.objects.get()


def later() -> None:
    """Let what waits be due."""
    Mail.objects.filter(next_attempt_at__isnull=False).update(
        next_attempt_at=F("next_attempt_at") - timedelta(days=2)
    )


def test_a_server_that_is_away_gets_the_letter_later(server, mail, settings, caplog) -> None:
    there, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    assert send_due() == 0
    assert f"Letter {mail.pk} (password) waits after attempt 1: The mail server cannot be used" in caplog.text
    mail.refresh_from_db()
    assert (mail.state, mail.attempts, "cannot be used" in mail.error) == (State.PENDING, 1, True)
    assert send_due() == 0  # not yet
    settings.EMAIL_PORT = there
    later()
    assert send_due() == 1
    mail.refresh_from_db()
    assert (mail.state, len(server.taken)) == (State.SENT, 1)


@pytest.mark.parametrize(
    ("answer", "state"),
    [("451 try later", State.PENDING), ("550 nobody of that name", State.FAILED), ("hang up", State.FAILED)],
)
def test_what_the_server_says_decides_whether_it_is_tried_again(server, mail, answer, state) -> None:
    server.script.append(answer)
    assert send_due() == 0
    mail.refresh_from_db()
    assert mail.state == state
    assert "nobody of that name" not in mail.error
    later()
    assert send_due() == (state == State.PENDING)
    assert len(server.taken) == (state == State.PENDING)


def test_a_letter_is_given_up_in_the_end(server, mail, caplog) -> None:
    for _ in range(len(sending.PAUSES) + 1):
        server.script.append("451 try later")
        send_due()
        later()
    mail.refresh_from_db()
    assert mail.state == State.FAILED
    said = [record.getMessage() for record in caplog.records if record.name == sending.log.name]
    assert said[-1] == f"Letter {mail.pk} (password) is given up: The mail server answered with 451."
    assert "ann@example.org" not in str(said)
    assert send_due() == 0


def test_what_a_dead_worker_may_have_sent_is_not_sent_again(server, mail) -> None:
    assert sending._claim() == mail
    assert sending._claim() is None  # nobody else takes it
    catch_up()
    mail.refresh_from_db()
    assert mail.state == State.SENDING
    later()
    catch_up()
    mail.refresh_from_db()
    assert (mail.state, mail.error) == (State.FAILED, sending.UNKNOWN)
    assert send_due() == 0
    assert not server.taken


def test_what_is_not_wanted_any_more_is_dropped(server, mail) -> None:
    User.objects.filter(pk=mail.user_id).update(email="other@example.org")
    assert send_due() == 0
    mail.refresh_from_db()
    assert mail.state == State.DROPPED


def test_old_letters_are_forgotten(server, mail) -> None:
    send_due()
    Mail.objects.update(finished_at=timezone.now() - timedelta(days=31))
    cache.clear()
    catch_up()
    assert not Mail.objects.exists()
