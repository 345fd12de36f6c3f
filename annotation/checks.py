"""What has to agree where several hosts work on one database: `manage.py check --deploy --database default`
says so on each of them, and a worker when it starts.

These are deployment checks, because `migrate` runs all others on the database that it is to change. One is
meant for it: a database whose tables no migration of this version leads on from is left as it is.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register, run_checks
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from annotation.common.agreed_settings import differing

# Sessions, links and logs tolerate so much; leases and heartbeats go by the database's clock.
CLOCKS_APART = timedelta(seconds=5)
HOSTS = "hosts"
# Steps that led to the tables of version 0.2.0; the tables of this one are made in one.
BEFORE_0_3 = {("annotation", "0002_task_types_and_pauses"), ("routing", "0002_more_constraints")}
TOO_OLD = Error(
    "This database was made by HyPAC before 0.3 and cannot be brought up to date in place.",
    hint=(
        "It was not changed. Go on with version 0.2.0 on it (git checkout v0.2.0) to finish and to export "
        "what it holds; for this version name an empty database."
    ),
    id="hypac.E004",
)


def was_made_before_0_3(applied: Collection[tuple[str, str]]) -> bool:
    """Whether a database on which these migrations (app, name) were applied cannot be brought up to date."""
    return not BEFORE_0_3.isdisjoint(applied)


def host_findings() -> list[CheckMessage]:
    """What this process finds wrong with the place where it runs. An unusable database is a finding, too."""
    try:
        return run_checks(tags=[HOSTS], include_deployment_checks=True, databases=["default"])
    except DatabaseError as error:
        return [Error(f"The database cannot be used: {type(error).__name__}.", id="hypac.E001")]


@register(Tags.database, HOSTS)
def check_age(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    if "default" not in (databases or ()):
        return []
    return [TOO_OLD] if _is_too_old("default") else []


def refuse_too_old(using: str, **_: Any) -> None:
    """Receiver of `pre_migrate`, for a `migrate` that runs no checks. Raises CommandError."""
    if _is_too_old(using):
        raise CommandError(f"{TOO_OLD.msg} {TOO_OLD.hint}")


def _is_too_old(using: str) -> bool:
    return was_made_before_0_3(MigrationRecorder(connections[using]).applied_migrations().keys())


@register(HOSTS, deploy=True)
def check_hosts(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Nothing where no database was named: without `--database` no connection is opened."""
    if "default" not in (databases or ()):
        return []
    return [*_versions(), *_clocks(), *_shared(), *_settings()]


def _versions() -> list[CheckMessage]:
    loader = MigrationLoader(connections["default"], ignore_no_migrations=True)
    ours = {"annotation", "routing"}
    applied = {name for name in loader.applied_migrations if name[0] in ours}
    if was_made_before_0_3(applied):  # said by check_age
        return []
    on_disk = {name for name in loader.disk_migrations if name[0] in ours}
    found: list[CheckMessage] = []
    if missing := sorted(on_disk - applied):
        found.append(
            Error(
                f"The database lacks {len(missing)} migrations of this version, the first is "
                f"{'.'.join(missing[0])}.",
                hint="Run manage.py migrate once, on one host.",
                id="hypac.E002",
            )
        )
    if newer := sorted(applied - on_disk):
        found.append(
            Warning(
                f"The database is that of a newer version, which has {'.'.join(newer[-1])}.",
                hint="Install the same version on every host.",
                id="hypac.W002",
            )
        )
    return found


def _clocks() -> list[CheckMessage]:
    connection = connections["default"]
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        apart = abs(timezone.now() - cursor.fetchone()[0])
    if apart <= CLOCKS_APART:
        return []
    return [
        Warning(
            f"The clock of this host and that of the database are {apart.total_seconds():.0f} s apart.",
            hint="Have both set by NTP.",
            id="hypac.W003",
        )
    ]


def _shared() -> list[CheckMessage]:
    """On PostgreSQL there may be other hosts, which see nothing of a folder of this one."""
    if settings.EMBEDDED:
        return []
    found: list[CheckMessage] = []
    if settings.CELERY_BROKER_URL.startswith("filesystem://"):
        found.append(
            Warning(
                "Jobs are announced in a folder of this host: workers on other hosts hear of none.",
                hint="Set CELERY_BROKER_URL; with one host it may stay.",
                id="hypac.W004",
            )
        )
    if isinstance(default_storage, FileSystemStorage):
        found.append(
            Warning(
                "Files lie in a folder of this host: workers on other hosts do not find them.",
                hint="Set HYPAC_S3_BUCKET (docs/deployment.md); with one host it may stay.",
                id="hypac.W005",
            )
        )
    return found


def _settings() -> list[CheckMessage]:
    names = differing()
    if not names:
        return []
    return [
        Error(
            f"This host has settings otherwise than where manage.py migrate last ran: {', '.join(names)}.",
            hint="Set them alike on every host. Once they were changed on all of them, run manage.py migrate "
            "on one, which notes what it has.",
            id="hypac.E005",
        )
    ]
