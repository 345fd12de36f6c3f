"""/readyz: whether this web process can do its work, part by part."""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse

from annotation.checks import was_made_before_0_3
from annotation.common.access import public
from hypac_site.celery import app

log = logging.getLogger(__name__)

# Whoever asks, and however often, each part is looked at once in so many seconds.
SECONDS = 3.0
STORAGE_SECONDS = 30.0
BROKER_TIMEOUT = 2


@dataclass
class _Part:
    """`check` raises where the part cannot be used. What it raises goes to the log, never into an answer."""

    name: str
    check: Callable[[], None]
    seconds: float = SECONDS
    well: bool = False
    looked_at: float = -1e9
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_well(self) -> bool:
        with self.lock:
            if time.monotonic() - self.looked_at >= self.seconds:
                self.well = self._try()
                self.looked_at = time.monotonic()
            return self.well

    def _try(self) -> bool:
        try:
            self.check()
        except Exception as error:
            log.warning("Not ready: %s (%s: %s)", self.name, type(error).__name__, error)
            return False
        return True


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _migrations() -> None:
    """Every migration of this version is applied. Those of a newer one do no harm while it is rolled out."""
    applied = MigrationRecorder(connection).applied_migrations()
    if was_made_before_0_3(applied.keys()):
        raise RuntimeError("made by a version before 0.3")
    loader = MigrationLoader(None)
    missing = sorted(set(loader.disk_migrations) - set(applied))
    if missing:
        raise RuntimeError(f"not applied: {', '.join('.'.join(name) for name in missing)}")


def _broker() -> None:
    with app.connection_for_write(connect_timeout=BROKER_TIMEOUT) as broker:
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_TIMEOUT)
        broker.default_channel  # noqa: B018 - with Redis only this one really connects


def _storage() -> None:
    name = default_storage.save(f"ready/{uuid.uuid4().hex}", ContentFile(b"ready"))
    default_storage.delete(name)


_parts = {
    part.name: part
    for part in (
        _Part("database", _database),
        _Part("migrations", _migrations),
        _Part("broker", _broker),
        _Part("storage", _storage, STORAGE_SECONDS),
    )
}


@public("GET")
def ready(request: HttpRequest) -> JsonResponse:
    """200 where every part can be used, else 503; the answer names each. `?without=broker` leaves parts out:
    pages work while the broker is down, so who balances load need not take this server out for it.
    """
    left_out = set(request.GET.get("without", "").split(","))
    found = {name: part.is_well() for name, part in _parts.items() if name not in left_out}
    answer = {name: "ok" if well else "failing" for name, well in found.items()}
    return JsonResponse({"ready": all(found.values()), **answer}, status=200 if all(found.values()) else 503)
