"""Many rows at once: what bulk_create would have stored, on both databases."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from annotation.common.bulk import _with_fractions, copy_rows
from annotation.models import Item, Project, StoredFile
from testbed.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database]
FIELDS = ("project", "external_id", "position", "text", "data", "content_hash")
ODD = "tab\t, line\n, back\\slash, \\N, quote\", 'single', é, 漢字, 😀, %s"


def rows(project: Project, count: int) -> list[tuple[Any, ...]]:
    return [
        (project.pk, f"t{n}", n, f"{ODD} {n}", {"text": ODD, "n": n, "none": None}, f"{n:064}")
        for n in range(count)
    ]


def stored(model: type[models.Model], **filters: Any) -> list[dict[str, Any]]:
    return list(model._default_manager.filter(**filters).order_by("pk").values())


def test_it_stores_what_bulk_create_does() -> None:
    one, other = make_project(), make_project()
    before = timezone.now()
    assert copy_rows(Item, FIELDS, iter(rows(one, 30))) == 30
    Item.objects.bulk_create(
        Item(
            **{
                ("project_id" if name == "project" else name): value
                for name, value in zip(FIELDS, row, strict=True)
            }
        )
        for row in rows(other, 30)
    )
    made, expected = stored(Item, project=one), stored(Item, project=other)
    assert {len(made), len(expected)} == {30}
    for left, right in zip(made, expected, strict=True):
        assert (left["fields"], left["image_id"]) == ([], None)
        assert before <= left["created_at"] <= timezone.now()
        for name in ("id", "project_id", "created_at"):
            del left[name], right[name]
        assert left == right


def test_numbers_times_and_nothing_are_kept_exactly() -> None:
    """A project has columns of every kind: it is copied with other keys, and read again."""
    model = make_project(human_cost=Decimal("0.0123"), guidelines=ODD)
    fields = [field for field in Project._meta.concrete_fields if not field.primary_key]
    values = {field.name: getattr(model, field.attname) for field in fields}
    values |= {"slug": "copy", "archived_at": timezone.now(), "columns": ["a", "é"]}
    assert copy_rows(Project, list(values), [list(values.values())]) == 1
    copy = Project.objects.get(slug="copy")
    assert {field.name: getattr(copy, field.attname) for field in fields} == values


def test_all_rows_are_added_or_none() -> None:
    project = make_project()
    twice = [*rows(project, 3), rows(project, 1)[0]]
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_rows(Item, FIELDS, twice)
    assert not project.items.exists()


def test_rows_that_break_off_leave_none() -> None:
    project = make_project()

    def broken() -> Any:
        yield from rows(project, 3)
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        copy_rows(Item, FIELDS, broken())
    assert not project.items.exists()


def test_it_is_part_of_the_open_transaction() -> None:
    project = make_project()
    with transaction.atomic():
        copy_rows(Item, FIELDS, rows(project, 3))
        assert project.items.count() == 3
        transaction.set_rollback(True)
    assert not project.items.exists()


def test_no_rows_and_unknown_columns() -> None:
    assert copy_rows(StoredFile, ("project", "sha256"), []) == 0
    with pytest.raises(ValueError, match="no column"):
        copy_rows(Project, ("items",), [])


NUMBERS = [
    1e16,
    -1e22,
    1e308,
    1.5e300,
    -1.7976931348623157e308,
    5e-324,
    0.0,
    1.0,
    float(2**63),
    2**63,
    10**16,
]


@pytest.mark.parametrize("number", [*NUMBERS, int("9" * 4_000), -int("9" * 4_000)])
def test_numbers_come_back_as_they_were(number: float) -> None:
    """Beside texts and names that look like large ones, and long whole numbers."""
    typed = {
        "text": 'a 1e+16 "q\\" e+5 \\\\',
        "e+20": 1e20,
        "1e+16": [number, {"é\\": number}, int("8" * 3_000), -1e16],
        "last": number,
    }
    project = make_project()
    copy_rows(Item, (*FIELDS, "typed"), [(*row, typed) for row in rows(project, 1)])
    kept = project.items.get().typed
    assert repr({name: kept[name] for name in typed}) == repr(typed)


def test_a_long_whole_number_is_gone_through_once() -> None:
    """Were each of its digits taken for the beginning of a number, this would take hours."""
    long = "-" + "7" * 2_000_000
    before = f'{{"e+": [{long}, 1e+16, {long}e, {long}.5]}}'
    assert _with_fractions(before) == before.replace("1e+16", "10000000000000000.0")
    assert json.loads(_with_fractions('["1e+16", -0.0, -1e+16, 1.5e+17]')) == ["1e+16", -0.0, -1e16, 1.5e17]
