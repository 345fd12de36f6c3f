"""Where people report what they find."""

import re
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from hypac_site import environment

ADDRESS = "/.well-known/security.txt"


def test_it_names_the_contact_and_when_to_look_again(settings) -> None:
    settings.HYPAC_SECURITY_CONTACT = "mailto:security@example.org"
    answer = Client().get(ADDRESS)
    assert answer["Content-Type"].startswith("text/plain")
    lines = dict(line.split(": ", 1) for line in answer.content.decode().splitlines())
    assert lines["Contact"] == "mailto:security@example.org"
    assert lines["Preferred-Languages"] == "en, fr"
    expires = datetime.fromisoformat(lines["Expires"])
    assert timedelta(days=30) < expires - timezone.now() < timedelta(days=365), "RFC 9116, 2.5.5"
    assert re.fullmatch(r"[0-9T:-]+Z", lines["Expires"])


def test_without_a_contact_there_is_no_such_page() -> None:
    assert Client().get(ADDRESS).status_code == 404


@pytest.mark.parametrize(
    "value", ["security@example.org", "http://x", "mailto:x", "mailto:a@b c", "https://x\ny"]
)
def test_what_is_no_contact_is_refused(monkeypatch, value: str) -> None:
    monkeypatch.setenv("HYPAC_SECURITY_CONTACT", value)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_SECURITY_CONTACT"):
        environment.contact("HYPAC_SECURITY_CONTACT")
