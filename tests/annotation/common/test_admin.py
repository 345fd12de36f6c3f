"""The administration opens, and leaves facts alone."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from annotation.common import append_only
from annotation.labelling import queue
from annotation.models import (
    AgreedSettings,
    AttemptBucket,
    AuditEvent,
    AuthenticatorApp,
    BucketFile,
    BucketSync,
    Choice,
    Comment,
    Connection,
    Draft,
    HeldOutItem,
    Invitation,
    Job,
    JobProblem,
    KeyedRequest,
    Label,
    Mail,
    Passkey,
    PracticeAnswer,
    Project,
    RecoveryCode,
    ReplacedChoice,
    Settlement,
    ShownSuggestion,
    SignOnSession,
    Skip,
    UsedOnce,
    WorkBatch,
    WorkItem,
)
from annotation.outside.webhooks.manage import create_webhook, send_test
from annotation.people.tokens import make_token
from testbed.factories import make_image_items, make_items, make_project, make_user, remove_deleted

pytestmark = pytest.mark.costly

# Choices are shown inside the page of their project.
MODELS = [model for model in apps.get_app_config("annotation").get_models() if model is not Choice]


@pytest.fixture
def rows(db) -> None:
    """At least one row of every model."""
    project = make_project()
    user = project.created_by
    items = make_items(project, 3) + make_image_items(project, 1)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    task = queue.claim(project=project, user=user)
    queue.submit(
        user=user, work_item_id=task.work_item.pk, token=task.token, value="cat", idempotency_key="k"
    )
    task = queue.claim(project=project, user=user)
    queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="other")
    Draft.objects.create(work_item=WorkItem.objects.first(), user=user, value="cat")
    ShownSuggestion.objects.create(work_item=WorkItem.objects.first(), user=user, value="cat", source="m")
    JobProblem.objects.create(job=Job.objects.create(project=project, kind="import"), where="x", message="y")
    Settlement.objects.create(
        batch=WorkBatch.objects.get(), item=items[0], value="cat", method=Settlement.Method.MAJORITY
    )
    Comment.objects.create(item=items[0], author=user, text="torn")
    Invitation.objects.create(
        project=project,
        role="annotator",
        token_hash="0" * 64,
        expires_at=timezone.now() + timedelta(days=1),
        created_by=user,
    )
    webhook, _secret = create_webhook(
        project=project, actor=user, url="https://example.org/key", events=["label.created"]
    )
    send_test(webhook=webhook, actor=user)
    store = Connection.objects.create(
        project=project,
        name="store",
        endpoint="https://example.org",
        bucket="b",
        access_key="k",
        secret="s",
        created_by=user,
    )
    sync = BucketSync.objects.create(connection=store, user=user)
    BucketFile.objects.create(sync=sync, key="in/a.csv", size=1, changed_at=timezone.now())
    held_out = HeldOutItem.objects.create(
        project=project, item=items[2], purpose="practice", at_random=False, answer="cat", created_by=user
    )
    PracticeAnswer.objects.create(held_out=held_out, user=user, value="cat", is_right=True)
    ReplacedChoice.objects.create(project=project, key="emu", name="emu", into=["cat"], created_by=user)
    make_token(user=user, name="nightly")
    AuthenticatorApp.objects.create(user=user, secret="s")
    Passkey.objects.create(user=user, name="key", credential_id="i", credential="c", handle="h")
    RecoveryCode.objects.create(user=user, code_hash="r")
    SignOnSession.objects.create(user=user, session_key="k" * 32, ends_at=timezone.now())
    UsedOnce.objects.create(name="logout:0", until=timezone.now())
    AgreedSettings.objects.get_or_create(pk=1)
    AttemptBucket.objects.create(name="address:192.0.2.1")
    Mail.objects.create(kind="work", user=user, to="ann@example.org", next_attempt_at=timezone.now())
    KeyedRequest.objects.create(user=user, key="k", address="POST /", created_at=timezone.now())
    assert Skip.objects.exists()


@pytest.fixture
def superuser(client, db):
    user = make_user("root", is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_lists_and_pages_open(client, superuser, rows, model, django_assert_max_num_queries) -> None:
    name = f"admin:annotation_{model._meta.model_name}"
    with django_assert_max_num_queries(12):
        assert client.get(reverse(f"{name}_changelist")).status_code == 200
    row = model._default_manager.first()
    assert client.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200


@pytest.mark.parametrize("model", [Label, AuditEvent, WorkItem, Job], ids=lambda model: model.__name__)
def test_facts_and_leases_cannot_be_changed_here(client, superuser, rows, model) -> None:
    name = f"admin:annotation_{model._meta.model_name}"
    row = model._default_manager.first()
    for page, arguments in (("add", []), ("delete", [row.pk])):
        assert client.get(reverse(f"{name}_{page}", args=arguments)).status_code == 403
    assert client.post(reverse(f"{name}_change", args=[row.pk]), {}).status_code == 403


def test_a_superuser_lets_people_in_and_the_audit_trail_says_so(client, superuser, rows) -> None:
    project = Project.objects.get()
    fields = {"project": project.pk, "user": superuser.pk, "role": "owner"}
    path = reverse("admin:annotation_membership_add")
    assert client.get(reverse("overview", args=[project.slug])).status_code == 404
    assert client.post(path, fields).status_code == 302
    assert client.get(reverse("overview", args=[project.slug])).status_code == 200
    event = project.audit_events.get(action="member.added")
    assert (event.actor, event.target) == (superuser, "user:root")
    assert event.data == {"role": "owner", "user": superuser.pk}
    assert "already exists" in client.post(path, fields).content.decode()
    gone = make_user("gone", is_active=False)
    assert "errorlist" in client.post(path, {**fields, "user": gone.pk}).content.decode()
    membership = project.memberships.get(user=superuser)
    for page in ("change", "delete"):
        path = reverse(f"admin:annotation_membership_{page}", args=[membership.pk])
        assert client.post(path, {**fields, "role": "viewer", "post": "yes"}).status_code == 403


def test_projects_are_made_on_their_own_pages(client, superuser, rows) -> None:
    assert client.get(reverse("admin:annotation_project_add")).status_code == 403
    project = Project.objects.get()
    change = reverse("admin:annotation_project_change", args=[project.pk])
    nothing = {f"choices-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    day = {"archived_at_0": "2026-01-01", "archived_at_1": "00:00"}
    assert client.post(change, {"name": "Other", **nothing, **day}).status_code == 302
    after = Project.objects.get()
    assert after.name == project.name
    assert after.archived_at is not None


def test_every_append_only_model_is_read_only(rf, superuser) -> None:
    request = rf.get("/")
    request.user = superuser
    for model, page in admin.site._registry.items():
        if model._meta.db_table in append_only._tables:
            assert not page.has_change_permission(request), model
            assert not page.has_delete_permission(request), model
            assert not page.has_add_permission(request), model


def test_a_project_is_deleted_here_with_the_facts_in_it(client, superuser, rows) -> None:
    project = Project.objects.get()
    page = reverse("admin:annotation_project_delete", args=[project.pk])
    assert client.get(page).status_code == 200
    assert client.post(page, {"post": "yes"}).status_code == 302
    remove_deleted(project)
    assert not Project.objects.exists()
    assert not Label.objects.exists()
