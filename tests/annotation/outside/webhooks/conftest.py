from collections.abc import Callable, Iterator
from typing import Any

import pytest

from annotation.common import workers
from annotation.models import Project, Webhook
from annotation.outside.webhooks import manage as service
from testbed.factories import make_project
from tests.annotation.outside.webhooks.acts import ALL
from tests.webhook_receiver import Receiver

Make = Callable[..., tuple[Webhook, str]]


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    with Receiver() as server:
        settings.HYPAC_PRIVATE_HOSTS = (f"127.0.0.1:{server.port}",)
        yield server


@pytest.fixture(autouse=True)
def announced(monkeypatch) -> list[int]:
    """Ids of the webhooks for which a worker was nudged."""
    sent: list[int] = []
    monkeypatch.setattr(workers, "_silent_until", 0.0)
    monkeypatch.setattr(workers, "message_workers", lambda task, pk: sent.append(pk))
    return sent


@pytest.fixture
def project(db) -> Project:
    return make_project()


@pytest.fixture
def make(project, receiver) -> Make:
    def make_webhook(**fields: Any) -> tuple[Webhook, str]:
        given = {"project": project, "actor": project.created_by, "url": receiver.url, "events": ALL}
        return service.create_webhook(**{**given, **fields})

    return make_webhook
