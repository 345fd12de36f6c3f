"""Processes of the version before go on beside a migrated database: what they insert names no new column."""

import pytest
from django.apps import apps
from django.db import connection, models

from annotation.models import Project, User
from routing.models import Delivery, Run
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
NEW = {
    User: {
        *("belonged_elsewhere", "made_in", "password_chosen_at", "reset_link_at", "reset_link_by_id"),
        *("username_key", "username_look"),
    },
    Project: {"deleting_at", "guidelines_html", "guidelines_version", "label_config"},
}


def insert_copy(row: models.Model, **other: object) -> int:
    """The row once more, by an INSERT that leaves out the columns that are new."""
    table = row._meta.db_table
    names = [
        field.column for field in row._meta.concrete_fields if field.column not in {"id", *NEW[type(row)]}
    ]
    taken = ", ".join("%s" if name in other else f'"{name}"' for name in names)
    quoted = ", ".join(f'"{name}"' for name in names)
    given = [other[name] for name in names if name in other]
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({quoted}) SELECT {taken} FROM "{table}" WHERE id = %s RETURNING id',  # noqa: S608
            [*given, row.pk],
        )
        return int(cursor.fetchone()[0])


def test_they_make_accounts_that_belong_to_their_holder_once_a_password_is_chosen() -> None:
    made = User.objects.get(pk=insert_copy(make_user("ann"), username="ben"))
    assert (made.belonged_elsewhere, made.made_in, made.password_chosen_at) == (False, None, None)


def test_they_make_projects() -> None:
    made = Project.objects.get(pk=insert_copy(make_project(), slug="of-before"))
    assert (made.guidelines_html, made.guidelines_version, made.label_config) == ("", 0, "")


@pytest.mark.parametrize(("model", "name"), [(Run, "accepts_unusable"), (Delivery, "filters")])
def test_the_database_fills_in_what_is_new_of_runs_and_deliveries(
    model: type[models.Model], name: str
) -> None:
    """As the schema has it: a row of either needs half a project."""
    table, column = model._meta.db_table, model._meta.get_field(name).column
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"SELECT dflt_value FROM pragma_table_info('{table}') WHERE name = %s", [column])  # noqa: S608
        else:
            cursor.execute(
                "SELECT column_default FROM information_schema.columns "
                "WHERE table_name = %s AND column_name = %s",
                [table, column],
            )
        assert cursor.fetchone()[0] is not None


def test_no_instance_holds_an_expression_before_it_is_stored() -> None:
    for model in apps.get_app_config("annotation").get_models():
        assert not [
            field.name
            for field in model._meta.concrete_fields
            if field.has_db_default() and not field.has_default()
        ]
