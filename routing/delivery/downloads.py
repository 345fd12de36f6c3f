"""Files of deliveries as answers, for pages and the API alike: one by one, or all as one zip archive, made
while it is sent, of which nothing is stored or held in memory.
"""

import hashlib
import re
import zipfile
from collections.abc import Iterator, Sequence

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _

from annotation.common.downloads import download
from annotation.common.files import BLOCK, open_file
from annotation.errors import InputError
from routing.models import Delivery, DeliveryFile

# Nothing in a delivery tells when it was made, so that the same files give the same archive.
FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
READ_BY_ALL = 0o644 << 16
DENSE = {"application/vnd.apache.parquet", "image/jpeg", "image/png"}
"""Compressed already."""
LARGE = 2 * 1024**3
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def is_delivered_name(name: str) -> bool:
    """Whether a file of a delivery may have this name: whoever unpacks it, it leads to no other folder."""
    return _NAME.fullmatch(name) is not None


def file_response(request: HttpRequest, file: DeliveryFile) -> HttpResponseBase:
    """One file, or the range of it that is asked for. `file` comes with its delivery, run and project.

    Raises InputError where the storage has lost it, StorageError where it cannot be used now.
    """
    name = f"{_saved_as(file.delivery)}-{file.name.replace('/', '-')}"
    return download(request, file.file, name=name, media_type=file.media_type)


def archive_response(request: HttpRequest, delivery: Delivery) -> HttpResponseBase:
    """All files of a delivery in one archive, made while it is sent: the same bytes each time, but no ranges.

    Raises as `file_response` does; once the archive has begun it could only break off.
    """
    files = list(delivery.files.select_related("file"))
    for entry in files:
        if not is_delivered_name(entry.name):
            raise InputError(
                _("No file of a delivery has such a name: %(name)s. Make a new delivery.")
                % {"name": entry.name[:200]}
            )
        open_file(entry.file).close()
    prefix = _prefix(delivery)
    names = "\n".join(f"{entry.file.sha256} {entry.name}" for entry in files)
    digest = hashlib.sha256("\n".join([prefix, names]).encode()).hexdigest()
    etag = f'"{digest}"'
    response: HttpResponseBase = get_conditional_response(request, etag=etag) or StreamingHttpResponse(
        zipped(files, prefix), content_type="application/zip"
    )
    for header, value in {
        "ETag": etag,
        "Accept-Ranges": "none",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="{_saved_as(delivery)}.zip"',
        "X-Content-Type-Options": "nosniff",
    }.items():
        response.headers[header] = value
    return response


def _prefix(delivery: Delivery) -> str:
    return f"run-{delivery.run.number}-delivery-{delivery.number}"


def _saved_as(delivery: Delivery) -> str:
    """How the names begin under which a browser saves files, those of many projects in one folder. In an
    archive the folder is named without the project: the same files give the same archive wherever they are.
    """
    return f"{delivery.run.project.slug}-{_prefix(delivery)}"


class Pipe:
    """What the archive writes into and the answer takes out of; it cannot go back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """There is nothing behind it."""

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def zipped(files: Sequence[DeliveryFile], folder: str) -> Iterator[bytes]:
    """Parts of the archive; the files lie in `folder`. Raises InputError where the storage has lost one."""
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for entry in files:
            info = zipfile.ZipInfo(f"{folder}/{entry.name}", FIRST_MOMENT)
            dense = entry.media_type in DENSE
            info.compress_type = zipfile.ZIP_STORED if dense else zipfile.ZIP_DEFLATED
            info.external_attr = READ_BY_ALL
            with (
                open_file(entry.file) as content,
                archive.open(info, "w", force_zip64=entry.file.size > LARGE) as out,
            ):
                while block := content.read(BLOCK):
                    out.write(block)
                    yield pipe.take()
    yield pipe.take()
