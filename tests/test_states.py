"""Worlds that are put back are those that their steps lead to."""

from unittest.mock import patch

import pytest
from django.db import transaction

from annotation.models import Item
from testbed import states
from testbed.factories import make_items
from testbed.worlds import World, make_world, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.database]


def completed() -> tuple[World, states.Rows, list[object]]:
    world = make_world(40)
    run = world.complete(m=20, epsilon="0.3")
    return world, states._all_rows(), rows_of(run)


def test_rows_files_and_what_comes_next_are_the_same() -> None:
    point = transaction.savepoint()
    first = completed()
    transaction.savepoint_rollback(point)
    with patch.object(states, "_state_after", side_effect=AssertionError("a step was taken again")):
        again = completed()
    assert again[1:] == first[1:]
    assert (again[0].truth, again[0].keys) == (first[0].truth, first[0].keys)
    added = make_items(again[0].project, 3)
    assert {item.pk for item in added}.isdisjoint(first[1][Item._meta.db_table])


def test_a_way_ends_with_what_something_else_writes() -> None:
    world = make_world(40)
    assert world.way is not None
    Item.objects.filter(pk=world.project.items.all()[0].pk).update(text="another")
    with patch.object(states, "_put_back", side_effect=AssertionError("put back over what was written")):
        world.calibrating(m=20)
    assert states.begin() is None


class TestWhereEachTestIsChanged:
    @pytest.fixture(autouse=True)
    def changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As modules do that take small steps."""

    def test_nothing_is_put_back(self) -> None:
        assert make_world(40).way is None


def test_nothing_is_put_back_where_a_test_may_have_changed_what_steps_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert states.draw_for is None
    assert make_world(40).way is None
