"""What has to agree where several hosts work on one database: `manage.py check --deploy --database default`
says so on each of them, and a worker when it starts.

These are deployment checks, because `migrate` runs all others on the database that it is to change.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

# Sessions, links and logs tolerate so much; leases and heartbeats go by the database's clock.
CLOCKS_APART = timedelta(seconds=5)
HOSTS = "hosts"
NAMED = 20


def host_findings() -> list[CheckMessage]:
    """What this process finds wrong with the place where it runs. An unusable database is a finding, too."""
    try:
        return run_checks(tags=[HOSTS], include_deployment_checks=True, databases=["default"])
    except DatabaseError as error:
        return [Error(f"The database cannot be used: {type(error).__name__}.", id="hypac.E001")]


@register(HOSTS, deploy=True)
def check_hosts(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Nothing where no database was named: without `--database` no connection is opened."""
    if "default" not in (databases or ()):
        return []
    versions = _versions()
    # A database of another version may lack what the next one asks for.
    return [*versions, *([] if versions else _names()), *_clocks(), *_shared()]


def _versions() -> list[CheckMessage]:
    loader = MigrationLoader(connections["default"], ignore_no_migrations=True)
    ours = {"annotation", "routing"}
    applied = {name for name in loader.applied_migrations if name[0] in ours}
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


def _names() -> list[CheckMessage]:
    """Accounts that were there before names had to differ (migration annotation 0012)."""
    from annotation.models import User

    unlike_none = User.objects.filter(username_look__isnull=True, is_active=True).exclude(
        username__contains=" "
    )
    names = sorted(unlike_none.values_list("username", flat=True)[:NAMED])
    if not names:
        return []
    return [
        Warning(
            f"Accounts have names that look like those of others: {', '.join(names)}.",
            hint="Find out whose they are; rename or switch off in the administration what is nobody's.",
            id="hypac.W006",
        )
    ]


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
