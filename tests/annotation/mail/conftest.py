from collections.abc import Iterator

import pytest

from annotation.common import workers
from hypac_site.environment import mail_settings
from testbed.mail_server import MailServer


@pytest.fixture
def server(settings, monkeypatch) -> Iterator[MailServer]:
    """A mail server that this site writes to."""
    monkeypatch.setattr(workers, "message_workers", lambda *_, **__: None)
    made = MailServer()
    made.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.HYPAC_MAIL_URL, settings.HYPAC_MAIL_FROM = made.address, "HyPAC <hypac@labels.example>"
    settings.HYPAC_ADDRESS = "https://labels.example"
    found = mail_settings(settings.HYPAC_MAIL_URL, settings.HYPAC_MAIL_FROM, settings.HYPAC_ADDRESS)
    for name, value in found.items():
        setattr(settings, name, value)
    yield made
    made.stop()
