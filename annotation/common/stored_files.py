"""Files that nothing names: of an import or a delivery that was killed, or that the storage kept when its
project was deleted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

from django.core.files.storage import default_storage
from django.utils import timezone

from annotation.errors import InputError
from annotation.models import StoredFile

# What `put_content` writes, and what /readyz tries the storage with: all else is none of our business.
FOLDERS = ("projects", "ready")
PAGE = 500
# A job writes its files first and the rows that name them last. That takes minutes, hours for a large import.
SHORTEST_HOURS = 1
# LocalFiles or ObjectStore, which can both list what they hold.
_storage: Any = default_storage


@dataclass
class Cleaned:
    """`files` and `bytes` that nothing names; `young`: left alone, as somebody may be at work on them."""

    looked_at: int = 0
    files: int = 0
    bytes: int = 0
    young: int = 0
    leftovers: int = 0


def clean_files(*, older_than_hours: float, remove: bool) -> Cleaned:
    """Find files of the storage that no row names and that are older than that, and remove them if asked.

    Raises InputError for less than SHORTEST_HOURS; StorageError where the storage cannot be used.
    """
    if older_than_hours < SHORTEST_HOURS:
        raise InputError(f"Give at least {SHORTEST_HOURS} hour: a job may be writing.", where="older-than")
    before = timezone.now() - timedelta(hours=older_than_hours)
    cleaned = Cleaned()
    found = chain.from_iterable(map(_storage.walk, FOLDERS))
    while page := list(islice(found, PAGE)):
        cleaned.looked_at += len(page)
        for name in _unnamed(page, before, cleaned):
            cleaned.files += 1
            cleaned.bytes += _size(name)
            if remove:
                _remove(name, before)
    for leftover in [leftover for folder in FOLDERS for leftover in _storage.leftovers(folder)]:
        if leftover.written_at < before:
            cleaned.leftovers += 1
            if remove:
                _storage.remove_leftover(leftover)
    return cleaned


def _unnamed(page: Iterable[tuple[str, datetime]], before: datetime, cleaned: Cleaned) -> Iterator[str]:
    written = dict(page)
    named = set(StoredFile.objects.filter(storage_name__in=written).values_list("storage_name", flat=True))
    for name in written.keys() - named:
        if written[name] < before:
            yield name
        else:
            cleaned.young += 1


def _remove(name: str, before: datetime) -> None:
    """Once more looked at: a job may have written it anew, or named it, since it was listed."""
    try:
        still_old = _storage.get_modified_time(name) < before
    except FileNotFoundError:
        return
    if still_old and not StoredFile.objects.filter(storage_name=name).exists():
        _storage.delete(name)


def _size(name: str) -> int:
    try:
        return int(_storage.size(name))
    except FileNotFoundError:
        return 0
