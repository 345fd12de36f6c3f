"""Files of deliveries as answers, for pages and the API alike."""

import hashlib

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from annotation.common.downloads import download
from annotation.common.files import open_file
from routing.delivery.archive import zipped
from routing.models import Delivery, DeliveryFile


def file_answer(request: HttpRequest, file: DeliveryFile) -> HttpResponseBase:
    """One file, or the range of it that is asked for. `file` comes with its delivery and run.

    Raises InputError where the storage has lost it, StorageError where it cannot be used now.
    """
    name = f"{_prefix(file.delivery)}-{file.name.replace('/', '-')}"
    return download(request, file.file, name=name, media_type=file.media_type)


def archive_answer(request: HttpRequest, delivery: Delivery) -> HttpResponseBase:
    """All files of a delivery in one archive, made while it is sent: the same bytes each time, but no ranges.

    Raises as `file_answer` does; once the archive has begun it could only break off.
    """
    files = list(delivery.files.select_related("file"))
    for entry in files:
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
        "Content-Disposition": f'attachment; filename="{prefix}.zip"',
        "X-Content-Type-Options": "nosniff",
    }.items():
        response.headers[header] = value
    return response


def _prefix(delivery: Delivery) -> str:
    return f"run-{delivery.run.number}-delivery-{delivery.number}"
