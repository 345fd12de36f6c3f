"""What a host says at its start where it has something otherwise than the others."""

from datetime import timedelta

import pytest
from django.core.checks import CheckMessage
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from annotation.checks import host_findings
from annotation.outside.secrets import encrypt
from hypac_site import celery
from routing.models import Source
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
OURS, THEIRS = "b3VyIGtleSBvdXIga2V5IG91ciBrZXkgb3VyIGtleSE=", "dGhlaXIga2V5IHRoZWlyIGtleSB0aGVpciBrZXkgISE="


def found() -> dict[str, CheckMessage]:
    return {str(finding.id): finding for finding in host_findings()}


@pytest.fixture
def source(settings) -> Source:
    settings.HYPAC_ENCRYPTION_KEYS, settings.EMBEDDED = [OURS], True
    make_world(4)
    source = Source.objects.order_by("pk")[0]
    Source.objects.filter(pk=source.pk).update(api_key=encrypt("secret of a server"))
    return source


def test_hosts_that_agree_find_nothing(source) -> None:
    assert found() == {}
    call_command("check", "--deploy", "--tag=hosts", "--database=default")


def test_another_key_is_named_without_the_secret_and_migrate_still_works(settings, source, caplog) -> None:
    settings.HYPAC_ENCRYPTION_KEYS = [THEIRS]
    settings.SECRET_KEY = "another one " * 5
    said = str(found()["hypac.E003"])
    assert f"1 of 1 sources ({source.pk})" in said
    assert "HYPAC_ENCRYPTION_KEYS" in said
    assert "secret of a server" not in said
    with pytest.raises(CommandError, match="stored keys"):
        call_command("check", "--deploy", "--tag=hosts", "--database=default")
    call_command("migrate", "--check", verbosity=0)

    closed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.db.connections.close_all", lambda: closed.append(True))
        celery._look_around()
    assert "HYPAC_ENCRYPTION_KEYS" in caplog.text
    assert closed, "no connection goes over to the children of a worker"


def test_versions_that_differ_are_told_of(source) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('routing', '9999_of_later', %s)",
            [timezone.now()],
        )
    assert "routing.9999_of_later" in str(found()["hypac.W002"])
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'routing'")
    assert "manage.py migrate" in str(found()["hypac.E002"])


@pytest.mark.parametrize(
    "step", [("annotation", "0002_task_types_and_pauses"), ("routing", "0002_more_constraints")]
)
def test_a_database_of_before_0_3_is_refused_as_it_is(step: tuple[str, str]) -> None:
    MigrationRecorder(connection).record_applied(*step)
    # A server is told of folders of this host alone, too.
    assert set(found()) - {"hypac.W004", "hypac.W005"} == {"hypac.E004"}
    words = r"(?s)before 0\.3.*Go on with version 0\.2\.0"
    for options in ([], ["--check"], ["annotation", "zero"]):
        with pytest.raises(SystemCheckError, match=words):
            call_command("migrate", *options, skip_checks=False)
    with pytest.raises(SystemCheckError, match=words):
        call_command("check", "--database=default")
    with pytest.raises(CommandError, match=words):
        call_command("migrate", skip_checks=True, verbosity=0)


def test_folders_of_one_host_and_its_clock_are_told_of_beside_a_server(settings, source, monkeypatch) -> None:
    settings.EMBEDDED = False
    assert {"hypac.W004", "hypac.W005"} <= set(found())
    if connection.vendor == "postgresql":
        later = timezone.now() + timedelta(seconds=60)
        monkeypatch.setattr("annotation.checks.timezone.now", lambda: later)
        assert "60 s apart" in str(found()["hypac.W003"])
