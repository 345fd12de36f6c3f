"""Stored files as answers: sent in pieces, whatever storage they lie in."""

import io
from collections.abc import Iterator
from typing import IO, Any

from django.http import FileResponse

from annotation.common.files import BLOCK


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
