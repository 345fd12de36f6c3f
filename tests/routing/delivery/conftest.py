from copy import deepcopy

import pytest

from routing.models import Run
from testbed.worlds import World, make_world
from tests.conftest import Stored


@pytest.fixture(scope="module")
def _routed(stored: Stored) -> tuple[World, Run]:
    def make() -> tuple[World, Run]:
        world = make_world(100)
        return world, world.routed(m=40)

    return stored(make)


@pytest.fixture
def routed(_routed: tuple[World, Run], db: None) -> tuple[World, Run]:
    """A world of 100 items with a routed run, made once for each module."""
    return deepcopy(_routed)
