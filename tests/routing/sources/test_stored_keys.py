"""The key of a source: encrypted in the database, given to its backend, shown nowhere."""

import io
from collections.abc import Iterable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Model
from rest_framework.test import APIClient

from annotation.common.files import open_file
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Job, Webhook
from annotation.outside.secrets import decrypt, encrypt
from annotation.outside.webhooks.manage import create_webhook, rotate_secret
from routing.delivery.deliver import deliver
from routing.models import Delivery, Run, Source
from routing.runs.route import route
from routing.sources.backend_for import backend_for, context_of
from routing.sources.stored_keys import rotate_stored_keys
from testbed.factories import make_user
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

SECRET = "sk-never-shown-4711"
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def _world_with_key(*, items: int = 100) -> tuple[Any, Source]:
    world = make_world(items)
    source = world.project.sources.get(position=1)
    source.api_key = encrypt(SECRET)
    source.save()
    return world, source


def test_the_backend_gets_the_key_and_its_context_does_not_print_it():
    _, source = _world_with_key()
    context = context_of(source)
    assert context.api_key == SECRET
    assert SECRET not in repr(context)


def test_a_key_that_opens_no_more_is_said_and_named(settings):
    _, source = _world_with_key()
    settings.SECRET_KEY = "another secret key of the site"
    with pytest.raises(InputError, match="Enter it again") as caught:
        backend_for(source)
    assert caught.value.where == "api_key"


def test_a_key_that_opens_no_more_invalidates_no_run(settings):
    world, _ = _world_with_key(items=200)
    run = world.analysed(m=80)
    before = settings.SECRET_KEY
    settings.SECRET_KEY = "another secret key of the site"
    with pytest.raises(ConflictError, match=r"Model 1 cannot be run now.*Enter it again.*put that right"):
        route(run=run, user=world.manager)
    run.refresh_from_db()
    assert (run.state, run.invalid_reasons) == (Run.State.ANALYSED, [])
    settings.SECRET_KEY = before
    job = route(run=run, user=world.manager)
    settings.SECRET_KEY = "another secret key of the site"
    jobs.run(job.pk)
    job.refresh_from_db()
    run.refresh_from_db()
    assert (job.state, run.invalid_reasons) == (Job.State.FAILED, [])
    assert "Enter it again" in job.error
    settings.SECRET_KEY = before
    jobs.retry(job=job)
    world.do("route_run")


def test_rotation_puts_every_key_under_the_first_one(settings):
    settings.HYPAC_ENCRYPTION_KEYS = [OLD]
    _, source = _world_with_key()
    settings.HYPAC_ENCRYPTION_KEYS = [NEW, OLD]
    said = io.StringIO()
    call_command("rotate_secrets", stdout=said)
    assert "1 stored keys" in said.getvalue()
    assert SECRET not in said.getvalue()
    settings.HYPAC_ENCRYPTION_KEYS = [NEW]
    source.refresh_from_db()
    assert decrypt(source.api_key) == SECRET


def test_rotation_names_what_it_cannot_open_and_leaves_it(settings):
    world, source = _world_with_key()
    second = world.project.sources.get(position=2)
    Source.objects.filter(pk=second.pk).update(api_key="gone")
    said = io.StringIO()
    with pytest.raises(CommandError, match=f"{world.project.slug}/{second.name}"):
        call_command("rotate_secrets", stdout=said)
    assert "1 stored keys" in said.getvalue()
    second.refresh_from_db()
    assert second.api_key == "gone"
    source.refresh_from_db()
    assert decrypt(source.api_key) == SECRET


def test_rotation_does_not_undo_a_key_that_is_entered_meanwhile(monkeypatch):
    _, source = _world_with_key()

    def entered(stored: str) -> str:
        Source.objects.filter(pk=source.pk).update(api_key=encrypt("newer"))
        return encrypt(decrypt(stored))

    monkeypatch.setattr("routing.sources.stored_keys.reencrypt", entered)
    assert rotate_stored_keys().rotated == 0
    source.refresh_from_db()
    assert decrypt(source.api_key) == "newer"


def _tables() -> Iterable[type[Model]]:
    return apps.get_models(include_auto_created=True)


def test_after_a_whole_run_the_key_is_in_no_table_file_page_answer_or_log(caplog, client):
    """Neither in plain anywhere, nor encrypted outside its column."""
    caplog.set_level("DEBUG")
    world, source = _world_with_key()
    run = world.complete(m=40)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    stored = source.api_key
    for entry in Delivery.objects.get(run=run).files.select_related("file"):
        with open_file(entry.file) as content:
            delivered = content.read().decode()
        assert SECRET not in delivered, entry.name
        assert stored not in delivered, entry.name
    with connection.cursor() as cursor:
        for model in _tables():
            columns = [field.column for field in model._meta.concrete_fields]
            for column in columns:
                quoted = connection.ops.quote_name
                cursor.execute(
                    f"SELECT COUNT(*) FROM {quoted(model._meta.db_table)} "  # noqa: S608
                    f"WHERE CAST({quoted(column)} AS text) LIKE %s OR CAST({quoted(column)} AS text) LIKE %s",
                    [f"%{SECRET}%", f"%{stored}%"],
                )
                own = model is Source and column == "api_key"
                assert cursor.fetchone()[0] == int(own), (model, column)
    assert Job.objects.exists()  # whose parameters were among what was searched
    project = f"/projects/{world.project.slug}"
    api = f"/api/v1{project}"
    client.force_login(world.manager)
    asked = [
        f"{project}/sources/",
        f"{project}/sources/{source.pk}/",
        f"{project}/runs/{run.number}/",
    ]
    boss = make_user("boss", is_staff=True, is_superuser=True)
    program = APIClient()
    program.force_authenticate(world.manager)
    answers = [client.get(path) for path in asked]
    answers += [program.get(f"{api}/sources/"), program.get(f"{api}/sources/{source.pk}/")]
    client.force_login(boss)
    answers += [
        client.get("/admin/routing/source/"),
        client.get(f"/admin/routing/source/{source.pk}/change/"),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.request["PATH_INFO"]
        body = answer.content.decode()
        assert source.name in body, answer.request["PATH_INFO"]
        assert SECRET not in body
        assert stored not in body
    assert SECRET not in caplog.text


def test_both_secrets_of_a_webhook_are_encrypted_anew_and_one_that_is_lost_is_named_once(settings):
    project = make_world(60).project
    settings.HYPAC_ENCRYPTION_KEYS = [OLD]
    made = [
        create_webhook(
            project=project,
            actor=project.created_by,
            url="https://h.example.org/",
            events=["import.finished"],
        )
        for _ in range(2)
    ]
    (kept, secret), (lost, _) = made
    newer = rotate_secret(webhook=kept, actor=project.created_by)
    Webhook.objects.filter(pk=lost.pk).update(secret="no secret", old_secret="nor this")
    settings.HYPAC_ENCRYPTION_KEYS = [NEW, OLD]
    done = rotate_stored_keys()
    assert (done.rotated, done.lost) == (2, (f"{project.slug}/webhook {lost.pk}",))
    settings.HYPAC_ENCRYPTION_KEYS = [NEW]
    kept.refresh_from_db()
    assert [decrypt(kept.secret), decrypt(kept.old_secret)] == [newer, secret]
