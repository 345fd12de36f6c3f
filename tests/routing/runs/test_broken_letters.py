"""Whoever leads a project is written to once when a certificate breaks, with the reason in their language."""

import pytest
from django.utils import timezone

from annotation.common import workers
from annotation.labelling import queue
from annotation.mail.letters import as_message
from annotation.models import Label, Mail, User
from routing.ports import CORRECTED
from routing.runs.certify import mark_invalid
from routing.runs.expert.audit import ALARMED
from routing.runs.later.audit import ALARMED as LATER_ALARMED
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.costly]


@pytest.fixture
def world(db: None, settings, monkeypatch) -> World:
    """A site that sends mail; its manager reads French."""
    monkeypatch.setattr(workers, "message_workers", lambda *args, **options: None)
    settings.HYPAC_MAIL_URL, settings.HYPAC_MAIL_FROM = "smtp://localhost", "HyPAC <hypac@labels.example>"
    settings.HYPAC_ADDRESS = "https://labels.example"
    world = make_world(60)
    confirmed = {"email": "ada@labels.example", "email_confirmed_at": timezone.now()}
    User.objects.filter(pk=world.manager.pk).update(**confirmed, language="en")
    return world


def letters() -> list[Mail]:
    return list(Mail.objects.filter(kind="certificate.broken"))


def test_a_certificate_that_breaks_is_written_of_once_and_says_why(world: World) -> None:
    run = world.analysed(m=40)
    for number, label in enumerate(Label.objects.filter(version=1).order_by("pk")[:2]):
        queue.correct(
            user=label.annotator,
            label_id=label.pk,
            value="dog" if label.value == "cat" else "cat",
            idempotency_key=f"corrected-{number}",
        )
    run.refresh_from_db()
    assert len(run.invalid_reasons) == 2
    [mail] = letters()
    assert mail.to == "ada@labels.example"
    message = as_message(mail)
    html = message.alternatives[0][0]
    for text in (message.body, html):
        assert f"The certificate of run {run.number} in {run.project.name} no longer holds." in text
        assert run.broken_by[0] in text
        assert run.broken_by[1] not in text
        assert "start a new run" in text
        assert f"https://labels.example/projects/{run.project.slug}/runs/{run.number}/" in text
    assert message.extra_headers["List-Unsubscribe"]
    mail.language = "fr"
    assert run.broken_by[0] not in as_message(mail).body


@pytest.mark.parametrize("alarm", [ALARMED, LATER_ALARMED])
def test_an_alarm_has_a_letter_of_its_own(world: World, alarm) -> None:
    run = world.analysed(m=40)
    mark_invalid(run=run, why=alarm, params={"differ": 3, "audited": 9}, actor=None)
    assert not letters()


def test_where_nothing_was_certified_nothing_broke(world: World) -> None:
    run = world.analysed(m=20, epsilon="0.001")
    assert not run.certificate.certified
    mark_invalid(run=run, why=CORRECTED, params={"item": "7"}, actor=None)
    assert not letters()
