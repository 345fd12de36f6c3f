"""Downloads of stored files, with their checksum; one that broke off goes on from there."""

import base64
import io
import re
from collections.abc import Iterator
from typing import IO, Any

from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from annotation.common.files import BLOCK, open_file
from annotation.models import StoredFile


def file_response(content: IO[bytes], *, size: int, **options: Any) -> FileResponse:
    """The content as a FileResponse with its length, which closes it; `options` are those of FileResponse.

    A web server reads a file of the disk by itself, waitress in the very thread that serves everybody. What
    comes over the network from an object store is therefore read here, in the thread of the request.
    """
    if _is_local(content):
        response = FileResponse(content, **options)
    else:
        response = FileResponse(_blocks(content), **options)
        response.set_headers(content)  # type: ignore[arg-type]  # any file will do
    response.headers["Content-Length"] = str(size)
    return response


def _is_local(content: IO[bytes]) -> bool:
    try:
        content.fileno()
    except (OSError, io.UnsupportedOperation):
        return False
    return True


def _blocks(content: IO[bytes]) -> Iterator[bytes]:
    with content:
        while block := content.read(BLOCK):
            yield block


# One range; whoever asks for several gets the whole file, as RFC 9110 (14.2) allows.
RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")


def download(request: HttpRequest, stored: StoredFile, *, name: str, media_type: str) -> HttpResponseBase:
    """The file as an attachment of this name and type, or the range of it that is asked for (RFC 9110, 14).

    Its ETag is its SHA-256, which `Repr-Digest` (RFC 9530) says once more in the form for programs. Browsers
    may keep it but ask each time, since a person's rights may end. Raises what `open_file` raises.
    """
    etag = f'"{stored.sha256}"'
    response: HttpResponseBase = get_conditional_response(request, etag=etag) or _content(
        request, stored, etag, media_type
    )
    digest = base64.b64encode(bytes.fromhex(stored.sha256)).decode()
    for header, value in {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "Repr-Digest": f"sha-256=:{digest}:",
        "X-Content-Type-Options": "nosniff",
    }.items():
        response.headers[header] = value
    return response


def _content(request: HttpRequest, stored: StoredFile, etag: str, media_type: str) -> HttpResponseBase:
    found = None
    if request.method == "GET" and request.headers.get("If-Range", etag) == etag:
        found = RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or found.groups() == ("", ""):
        return file_response(open_file(stored), size=stored.size, content_type=media_type)
    first, last = _span(found[1], found[2], stored.size)
    if first > last:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{stored.size}"})
    return StreamingHttpResponse(
        _part(open_file(stored), first, last),
        status=206,
        content_type=media_type,
        headers={
            "Content-Length": str(last - first + 1),
            "Content-Range": f"bytes {first}-{last}/{stored.size}",
        },
    )


def _span(first: str, last: str, size: int) -> tuple[int, int]:
    """The first and the last byte; none where the second is before the first."""
    if not first:
        return max(size - int(last), 0), size - 1
    start = int(first)
    if last and int(last) < start:
        return 1, 0
    return start, min(int(last), size - 1) if last else size - 1


def _part(content: IO[bytes], first: int, last: int) -> Iterator[bytes]:
    with content:
        content.seek(first)
        left = last - first + 1
        while left and (block := content.read(min(BLOCK, left))):
            left -= len(block)
            yield block
