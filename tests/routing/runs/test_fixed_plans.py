"""A plan cannot change after its draw: not through the ORM, not in SQL, not in the administration."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import JSONField
from django.urls import reverse

from annotation.common import append_only
from routing.models import PoolItem, Run, RunSource
from testbed.factories import make_user
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

OTHER = {
    "epsilon": Decimal("0.2"),
    "alpha": Decimal("0.2"),
    "number": 9,
    "target": "pool",
    "m": 21,
    "p": Decimal("0.5"),
    "whole_size": 3,
    "bound": "betting_upper",
    "rule": "multi_chain",
    "split_share": Decimal("0.5"),
    "score": "recorded2",
    "score_params": {"a": 1},
    "loss": "numeric",
    "loss_params": {"a": 1},
    "human_cost": Decimal(9),
    "suggestions": True,
    "pool_size": 61,
    "pool_hash": "0" * 64,
    "entropy": "8",
    "salt": "other",
    "chains": [],
}


@pytest.fixture
def world() -> World:
    world = make_world(60)
    world.start(m=20)
    world.do("prepare_run")
    return world


@pytest.mark.parametrize("column", OTHER)
def test_no_column_of_a_plan_can_be_changed(world, column) -> None:
    before = Run.objects.values().get()
    with pytest.raises(IntegrityError, match="cannot be changed after its draw"), transaction.atomic():
        Run.objects.update(**{column: OTHER[column]})
    run = Run.objects.get()
    setattr(run, column, OTHER[column])
    with pytest.raises(IntegrityError, match="cannot be changed after its draw"), transaction.atomic():
        run.save()
    assert Run.objects.values().get() == before


def test_the_columns_of_p_are_fixed_as_well(world) -> None:
    with pytest.raises(IntegrityError, match="cannot be changed after its draw"), transaction.atomic():
        Run.objects.update(p_column="p", p_min=Decimal("0.1"))


def test_every_column_is_either_fixed_or_meant_to_change() -> None:
    moving = {
        *("id", "state", "invalid_reasons", "calibration_batch_id", "routed_batch_id"),
        *("analysed_at", "routed_at", "completed_at", "budget", "tally"),
        *("expert_batch_id", "expert_routed_batch_id", "audit_alarm_at", "audit_found"),
        *("accepts_unusable", "later_size", "later_audit_batch_id"),
    }
    filled_in_once = {"pool_hash", "alpha_spent", "randomness", "chains", "slices"}
    columns = {field.column for field in Run._meta.concrete_fields}
    assert columns == moving | filled_in_once | set(Run.PLAN_COLUMNS)


def test_neither_can_it_in_sql(world) -> None:
    for statement in (
        "UPDATE routing_run SET alpha = 0.5",
        "UPDATE routing_runsource SET cost_per_label = 0",
        "UPDATE routing_run SET chains = NULL",
        "UPDATE routing_run SET slices = '{}'",
    ):
        with (
            pytest.raises(IntegrityError, match=r"cannot be changed|append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)


def test_a_source_of_a_run_stays_as_it_was(world) -> None:
    row = RunSource.objects.first()
    row.fingerprint = "another"
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        row.save()


@pytest.mark.parametrize("change", [{"u": 0.5}, {"u": None}, {"v": 1}, {"position": 1_000}])
def test_the_frozen_pool_stays_as_it_was(world, change) -> None:
    some = PoolItem.objects.filter(pk=PoolItem.objects.first().pk)
    with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
        some.update(**change)


def test_the_rest_of_a_run_moves_on(world) -> None:
    run = Run.objects.get()
    run.state, run.invalid_reasons = Run.State.CANCELLED, ["why"]
    run.save()
    assert Run.objects.get().state == Run.State.CANCELLED


def test_making_the_triggers_again_and_reading_json_back_changes_nothing(world) -> None:
    append_only.install()
    run = Run.objects.get()
    assert any(isinstance(field, JSONField) for field in Run._meta.fields)
    run.save()
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.update(m=19)


def test_neither_can_it_in_the_administration(world, client) -> None:
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    run = Run.objects.get()
    page = reverse("admin:routing_run_change", args=[run.pk])
    assert client.get(page).status_code == 200
    assert client.post(page, {"alpha": "0.5", "epsilon": "0.5"}).status_code == 403
    assert Run.objects.get().alpha == Decimal("0.1")


def test_a_later_version_may_widen_a_column_of_a_plan() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite makes the whole table anew, and its triggers after it")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE routing_run ALTER COLUMN loss TYPE varchar(300)")
