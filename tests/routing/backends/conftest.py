from collections.abc import Iterator

import pytest

from routing.backends.openai_api import endpoint, throttle
from testbed.scripted_server import ScriptedServer


@pytest.fixture(autouse=True)
def loopback(settings) -> None:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch) -> None:
    """Backoff as long as ever in its shape, and a hundred times as short."""
    monkeypatch.setattr(endpoint, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(endpoint, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(throttle, "FIRST_PAUSE", 0.01)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer("cat") as running:
        yield running
