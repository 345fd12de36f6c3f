"""Facts are kept by the database itself, whoever asks."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from annotation.common import append_only
from annotation.labelling import queue
from annotation.models import AuditEvent, Label, Project
from testbed.factories import make_image_items, make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def corrected() -> Label:
    """The second version of a label."""
    project = make_project()
    items = make_items(project, 1) + make_image_items(project, 1)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    user = project.created_by
    task = queue.claim(project=project, user=user)
    assert task is not None
    first = queue.submit(
        user=user, work_item_id=task.work_item.pk, token=task.token, value="cat", idempotency_key="1"
    )
    return queue.correct(user=user, label_id=first.pk, value="dog", idempotency_key="2")


def test_a_label_is_never_changed(corrected) -> None:
    corrected.value = "cat"
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        corrected.save()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Label.objects.update(comment="x")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Label.objects.bulk_update([corrected], ["value"])
    assert set(Label.objects.values_list("version", "value")) == {(1, "cat"), (2, "dog")}


def test_an_audit_event_is_never_changed(corrected) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEvent.objects.update(action="nothing")


def test_every_table_that_is_named_exists_and_is_protected() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'")
        else:
            cursor.execute("SELECT event_object_table FROM information_schema.triggers")
        protected = {table for (table,) in cursor.fetchall()}
    assert append_only._tables.keys() | append_only._columns.keys() <= protected
    assert {"annotation_label", "routing_prediction"} <= append_only._tables.keys()
    assert "annotation_auditevent" in append_only._columns


def test_a_table_of_which_less_is_fixed_now_loses_its_older_trigger(corrected) -> None:
    table = "annotation_auditevent"
    older = append_only._refusing_trigger(
        connection.vendor, table, f"{table}_append_only", "1 = 1", "of an earlier version"
    )
    redacted = {"target": "user:person 1", "redactions": F("redactions") + 1}
    with connection.cursor() as cursor:
        for statement in older:
            cursor.execute(statement)
    with pytest.raises(IntegrityError, match="earlier version"), transaction.atomic():
        AuditEvent.objects.update(**redacted)
    append_only.install()
    assert AuditEvent.objects.update(**redacted) > 0


def test_putting_the_triggers_in_place_again_changes_nothing(corrected) -> None:
    append_only.install()
    with pytest.raises(IntegrityError), transaction.atomic():
        Label.objects.update(comment="x")


def test_a_deleted_project_takes_its_facts_along(corrected) -> None:
    Project.objects.get().delete()
    assert not Label.objects.exists()
