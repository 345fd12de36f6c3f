"""How pages of the table of items find their rows and their number, and where they stop."""

import itertools
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from annotation.common.query_timeout import TookTooLongError
from annotation.permissions import access_to
from routing.items import keyset as item_walk
from routing.items.counts import Total, table_total
from routing.items.table import item_rows
from routing.visibility import view_permission
from testbed.factories import make_items, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def test_a_count_that_takes_too_long_is_given_up(monkeypatch):
    @contextmanager
    def too_long(seconds, **settings):
        raise TookTooLongError
        yield

    project = make_project()
    make_items(project, 3)
    permission = view_permission(project, access_to(project.created_by, project.slug))
    assert table_total(permission, filters={}) == Total(3)
    monkeypatch.setattr("routing.items.counts.limit_query_time", too_long)
    assert table_total(permission, filters={}).kind == "unknown"
    assert project.items.count() == 3


def pages_of(project, access, **asked):
    page = item_rows(project, access, size=7, **asked)
    yield page
    while page.next is not None:
        page = item_rows(project, access, size=7, after=page.next, **asked)
        yield page


def test_a_walk_in_stretches_finds_what_one_look_does(monkeypatch):
    world = make_world(40)
    world.complete(m=25)
    access = access_to(world.manager, world.project.slug)
    chosen = ({}, {"by": "1", "u_to": "0.6"}, {"stage": "labelled", "label": "dog"})
    whole = {
        (sort, number): [row.id for row in item_rows(world.project, access, filters=filters, sort=sort).rows]
        for sort in ("name", "-u", "label", "-time")
        for number, filters in enumerate(chosen)
    }
    # However busy the machine is: what takes too long is the next test's.
    monkeypatch.setattr("routing.items.keyset.SECONDS", 3600)
    monkeypatch.setattr("routing.items.keyset.FIRST", 3)
    monkeypatch.setattr("routing.items.keyset.TELLING", 5)
    monkeypatch.setattr("routing.items.keyset.LATER", 6)
    for few, (sort, number) in itertools.product((0, 20_000), whole):
        monkeypatch.setattr("routing.items.keyset.FEW", few)
        pages = list(pages_of(world.project, access, filters=chosen[number], sort=sort))
        assert [row.id for page in pages for row in page.rows] == whole[sort, number], (sort, number, few)
        assert all(len(page.rows) == 7 for page in pages[:-1])
        if len(pages) > 1 and few:
            back = item_rows(
                world.project, access, filters=chosen[number], sort=sort, size=7, before=pages[-1].previous
            )
            assert back.rows == pages[-2].rows


def test_a_page_that_takes_too_long_says_so_and_the_next_one_goes_on(monkeypatch):
    project = make_project()
    make_items(project, 40)
    access = access_to(project.created_by, project.slug)
    monkeypatch.setattr("routing.items.keyset.FIRST", 5)
    monkeypatch.setattr("routing.items.keyset.TELLING", 5)
    monkeypatch.setattr("routing.items.keyset.LATER", 5)
    monkeypatch.setattr("routing.items.keyset.FEW", 0)
    clock = itertools.count()
    monkeypatch.setattr("routing.items.keyset.time", SimpleNamespace(monotonic=lambda: next(clock)))
    # Time for one stretch of five.
    monkeypatch.setattr("routing.items.keyset.SECONDS", 1.5)
    pages = list(pages_of(project, access, filters={"q": "t39"}))
    assert [[row.external_id for row in page.rows] for page in pages] == [[]] * 7 + [["t39"], []]
    assert [page.cut for page in pages] == [True] * 8 + [False]
    back = item_rows(project, access, filters={"q": "t30"}, size=7, before=pages[-2].previous)
    assert back.cut
    assert back.previous is not None


def test_an_item_is_on_a_page_once_while_others_come_in(monkeypatch):
    project = make_project()
    make_items(project, 20)
    access = access_to(project.created_by, project.slug)
    monkeypatch.setattr("routing.items.keyset.FIRST", 5)
    monkeypatch.setattr("routing.items.keyset.TELLING", 5)
    let_through = item_walk._let_through
    numbers = itertools.count(20)

    def and_one_more(*asked):
        rows = let_through(*asked)
        number = next(numbers)
        project.items.create(external_id=f"t{number}", position=number, text="new", content_hash="new")
        return rows

    monkeypatch.setattr(item_walk, "_let_through", and_one_more)
    page = item_rows(project, access, filters={"stage": "unlabelled"}, sort="-position", size=12)
    assert [row.position for row in page.rows] == list(range(19, 7, -1))


def test_many_items_are_told_from_a_sample(monkeypatch):
    project = make_project()
    make_items(project, 300)
    access = access_to(project.created_by, project.slug)
    permission = view_permission(project, access)
    monkeypatch.setattr("routing.items.counts.COUNTED", 20)
    monkeypatch.setattr("routing.items.counts.SAMPLE", 100)
    assert table_total(permission, filters={}) == Total(300, "about")
    about = table_total(permission, filters={"q": "t1"})  # 111 of them
    assert about.kind == "about"
    assert 75 <= about.count <= 150
    assert table_total(permission, filters={"q": "t1"}) == about
    assert table_total(permission, filters={"q": "t29"}) == Total(11)
