"""Which version this is, and whether the database and the environment are those that it wants."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from django.conf import settings
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from annotation.checks import TOO_OLD, was_made_before_0_3

DEPRECATED: dict[str, str] = {}
"""Variables that still work, and what to set in their place (docs/deployment.md, "What stays")."""
# Of the proxy, of scripts and of tests: no settings of the site.
OTHERS = frozenset({"HYPAC_HOST", "HYPAC_UPSTREAMS", "HYPAC_USER"})
OF_TESTS = ("HYPAC_TEST_", "HYPAC_CHROMIUM", "HYPAC_DATA")


@cache
def version() -> str:
    """The one in pyproject.toml, where it stands."""
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def findings() -> Iterator[str]:
    """What does not agree with this version, each with what to do. Nothing is changed."""
    yield from of_database()
    yield from of_environment(os.environ)


def of_database() -> Iterator[str]:
    connection = connections["default"]
    try:
        applied = set(MigrationRecorder(connection).applied_migrations())
    except DatabaseError as error:
        if connection.vendor == "sqlite":
            yield f"{connection.settings_dict['NAME']} cannot be read as a database ({error})."
        else:
            yield (
                f"The database cannot be asked ({type(error).__name__}): see DATABASE_URL, and whether it "
                "runs."
            )
        return
    if was_made_before_0_3(applied):
        yield f"{TOO_OLD.msg} {TOO_OLD.hint}"
        return
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    if not applied:
        yield (
            "The database is empty: run manage.py migrate for a new site. To put a backup back, leave it "
            "empty and run manage.py restore, which refuses tables that migrate has made."
        )
    elif missing := sorted(known - applied):
        yield (
            f"The database is older: it lacks {len(missing)} of this version's migrations, from "
            f"{'.'.join(missing[0])} on. Make a backup, then run manage.py migrate once, on one host."
        )
    ours = {"annotation", "routing"}
    if newer := sorted(name for name in applied - known if name[0] in ours):
        yield (
            f"The database is newer: it has {'.'.join(newer[-1])}, which this version does not know. Install "
            "the version that made it; what was migrated is not undone."
        )


def of_environment(given: Mapping[str, str]) -> Iterator[str]:
    """Misspelt settings are not missed otherwise: what they should have set has its default."""
    known = documented()
    for name in sorted(name for name in given if name.startswith("HYPAC_")):
        if name in DEPRECATED:
            yield f"{name} is deprecated: {DEPRECATED[name]}"
        elif name not in known | OTHERS and not name.startswith(OF_TESTS):
            near = get_close_matches(name, known, 1, 0.8)
            meant = f" Is {near[0]} meant?" if near else ""
            yield f"{name} is set, and no setting of this version.{meant} Take it out, or see CHANGELOG.md."


@cache
def documented() -> frozenset[str]:
    """All settings: a test holds the page to them."""
    page = settings.BASE_DIR / "docs" / "configuration.md"
    return frozenset(re.findall(r"\bHYPAC_[A-Z0-9_]+", page.read_text(encoding="utf-8")))
