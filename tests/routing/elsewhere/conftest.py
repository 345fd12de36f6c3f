"""What tests of measured losses share."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from testbed.measured import world_of_meshes
from testbed.worlds import World


@pytest.fixture
def world() -> World:
    return world_of_meshes(80)


@pytest.fixture
def certificate_page(client: Client) -> Callable[[World], str]:
    """What a manager reads on the page of the certificate."""

    def read(world: World) -> str:
        client.force_login(world.manager)
        return client.get(reverse("run_certificate_page", args=[world.project.slug, 1])).content.decode()

    return read
