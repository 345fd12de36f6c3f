"""The workshop that the tests here share, with its server."""

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.scripted_server import ScriptedServer
from tests.routing.workshop.workshop import Workshop, said


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer(said, models=["tiny"]) as running:
        yield running


@pytest.fixture
def workshop(server: ScriptedServer) -> Workshop:
    return Workshop(server)
