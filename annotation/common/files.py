"""Files, named by the SHA-256 of their content."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import InputError
from annotation.models import Item, Project, StoredFile

BLOCK = 1024**2
MODEL_OUTPUT = "application/x-hypac-predictions"
"""Media type of files that hold what models answered: nobody is shown what is in them."""
TOO_LARGE = failures.register(
    "file_too_large",
    gettext_noop(
        "The file is larger than %(hypac_max_upload_bytes)s bytes. Split it, or raise HYPAC_MAX_UPLOAD_BYTES."
    ),
)
LOST = failures.register("file_lost", gettext_noop("The file is no longer in the storage. Upload it again."))
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Content:
    """Bytes in the storage that no StoredFile may name yet."""

    sha256: str
    storage_name: str
    size: int


def store_file(*, project: Project, content: IO[bytes], original_name: str, media_type: str) -> StoredFile:
    """Keep a file of the project. The same bytes are kept once: the first row, and its name, come back.

    `content` must be seekable; it is read in blocks. Raises InputError for more than HYPAC_MAX_UPLOAD_BYTES.
    """
    put = put_content(project=project, content=content, most=settings.HYPAC_MAX_UPLOAD_BYTES)
    return name_content(project=project, content=put, original_name=original_name, media_type=media_type)


def name_content(*, project: Project, content: Content, original_name: str, media_type: str) -> StoredFile:
    """The row that names bytes of the storage; that of the same bytes, where there is one. Bytes that
    came as MODEL_OUTPUT once are that from then on, whatever else they came as before or come as later.
    """
    stored, made = StoredFile.objects.get_or_create(
        project=project,
        sha256=content.sha256,
        defaults={
            "storage_name": content.storage_name,
            "original_name": clean_name(original_name),
            "media_type": media_type[:100] or "application/octet-stream",
            "size": content.size,
        },
    )
    closes = not made and media_type == MODEL_OUTPUT != stored.media_type
    if closes and not Item.objects.filter(image=stored).exists():  # items go on showing their images
        stored.media_type = media_type
        stored.save(update_fields=["media_type"])
    return stored


def put_content(*, project: Project, content: IO[bytes], most: int | None = None) -> Content:
    """Write bytes to the storage under their hash. Twice has one effect; call it outside a transaction.

    Raises InputError for more than `most` bytes, StorageError where the storage cannot be used now.
    """
    digest = hashlib.sha256()
    size = 0
    content.seek(0)
    while block := content.read(BLOCK):
        size += len(block)
        if most is not None and size > most:
            raise TOO_LARGE.error(raised_as=InputError, where="file", hypac_max_upload_bytes=f"{most:,}")
        digest.update(block)
    sha256 = digest.hexdigest()
    name = f"projects/{project.pk}/{sha256[:2]}/{sha256}"
    if not _is_there(name, size) or not StoredFile.objects.filter(project=project, sha256=sha256).exists():
        # Also where nothing names it yet: written anew it is too young for `clean_files` to remove.
        content.seek(0)
        default_storage.save(name, File(content))
    return Content(sha256, name, size)


def _is_there(name: str, size: int) -> bool:
    """Whole, that is: of the right size."""
    try:
        return default_storage.size(name) == size
    except FileNotFoundError:
        return False


def open_file(stored: StoredFile) -> IO[bytes]:
    """Open for reading; the caller closes it. It can be read from any place, however large it is: an object
    store is asked for pieces.

    Raises InputError where the storage has lost it; StorageError where the storage cannot be used now, which
    reading raises as well.
    """
    try:
        file: IO[bytes] = default_storage.open(stored.storage_name, "rb")
    except FileNotFoundError:
        raise LOST.error(raised_as=InputError, where=stored.original_name) from None
    return file


def clean_name(name: str) -> str:
    """The last part of a name, for people to read: it never becomes part of a path."""
    last = _UNPRINTABLE.sub("", name.replace("\\", "/")).rstrip("/").rsplit("/", 1)[-1].strip()
    return last[-255:] or "file"


# --- Cleaning up --------------------------------------------------------------------------------------------

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
