"""A host that has a setting otherwise than the others says which; the database tells nobody what it is."""

import copy
import json

import pytest
from django.core.management import call_command

from annotation.checks import host_findings
from annotation.common.agreed_settings import note
from annotation.models import AgreedSettings

pytestmark = pytest.mark.django_db
MAIL = "smtp://hypac:hunter2@mail.example.org:587"


def said() -> str:
    return "".join(str(finding) for finding in host_findings() if finding.id == "hypac.E005")


@pytest.fixture(autouse=True)
def agreed(settings) -> None:
    settings.HYPAC_MAIL_URL = MAIL
    note()


def test_hosts_that_agree_find_nothing() -> None:
    assert said() == ""


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("HYPAC_ENCRYPTION_KEYS", ["dGhlaXIga2V5IHRoZWlyIGtleSB0aGVpciBrZXkgISE="]),
        ("HYPAC_MAIL_URL", ""),
        ("HYPAC_MAX_IMAGE_BYTES", 1),
    ],
)
def test_a_setting_that_differs_is_named(settings, name, other) -> None:
    setattr(settings, name, other)
    assert f"last ran: {name}." in said()


def test_another_bucket_is_named_and_other_keys_to_it_are_not(settings) -> None:
    options = {"bucket_name": "labels", "endpoint_url": None, "location": "", "access_key": "a"}
    stores = {
        **settings.STORAGES,
        "default": {"BACKEND": "annotation.common.storage.LocalFiles", "OPTIONS": options},
    }
    settings.STORAGES = stores
    note()
    settings.STORAGES = copy.deepcopy(stores)
    settings.STORAGES["default"]["OPTIONS"]["access_key"] = "b"
    assert said() == ""
    settings.STORAGES["default"]["OPTIONS"]["bucket_name"] = "lables"
    assert "last ran: HYPAC_S3_BUCKET." in said()


def test_under_another_secret_key_nothing_else_is_guessed(settings) -> None:
    settings.SECRET_KEY = "another one " * 5
    assert "last ran: DJANGO_SECRET_KEY." in said()


def test_migrate_notes_what_was_changed_on_purpose(settings) -> None:
    settings.HYPAC_ENCRYPTION_KEYS = ["dGhlaXIga2V5IHRoZWlyIGtleSB0aGVpciBrZXkgISE="]
    assert said()
    call_command("migrate", verbosity=0)
    assert said() == ""


def test_a_copy_of_the_database_tells_nothing_and_is_no_help_in_guessing(settings) -> None:
    stored = AgreedSettings.objects.get().fingerprints
    assert "hunter2" not in json.dumps(stored)
    assert len(set(stored.values())) == len(stored), "not even which settings are alike"
    settings.SECRET_KEY = "another one " * 5
    note()
    assert not set(stored.values()) & set(AgreedSettings.objects.get().fingerprints.values())


def test_without_a_note_or_of_another_version_nothing_is_said() -> None:
    AgreedSettings.objects.update(fingerprints={"HYPAC_OF_LATER": "x"})
    assert said() == ""
    AgreedSettings.objects.all().delete()
    assert said() == ""
