"""What tests of several areas share: what a test may require, and an environment for child processes."""

import os
from typing import NoReturn
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

CAPABILITIES = ("browser", "gettext", "llm", "postgres", "redis")


def is_required(capability: str) -> bool:
    """Whether a missing `capability` is a failure: always in CI, elsewhere if HYPAC_TEST_REQUIRE names it."""
    if capability not in CAPABILITIES:
        raise ValueError(f"{capability!r} is none of {CAPABILITIES}")
    named = os.environ.get("HYPAC_TEST_REQUIRE", "").replace(",", " ").split()
    return capability in named or os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing(capability: str, reason: str) -> NoReturn:
    """End the test because the machine lacks `capability`: as skipped, or as failed where it is required."""
    if is_required(capability):
        pytest.fail(f"{reason} It is required here (CI or HYPAC_TEST_REQUIRE).", pytrace=False)
    pytest.skip(reason)


def database_url() -> str:
    """The DATABASE_URL of the database that the running test uses."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    login = quote(database["USER"] or "", safe="")
    if database["PASSWORD"]:
        login += ":" + quote(database["PASSWORD"], safe="")
    # A socket's folder has slashes in it, which a URL's host cannot have unquoted.
    host = quote(database["HOST"] or "", safe="")
    port = f":{database['PORT']}" if database["PORT"] else ""
    return f"postgres://{login}{'@' if login else ''}{host}{port}/{quote(database['NAME'], safe='')}"


def child_environment(**extra: str) -> dict[str, str]:
    """Environment in which `manage.py` works on this test's database and files, for tests with processes.

    The test has to use committed data (`@pytest.mark.django_db(transaction=True)`).
    """
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        "HYPAC_VAR": str(settings.VAR_DIR),
        "DATABASE_URL": database_url(),
        **extra,
    }
