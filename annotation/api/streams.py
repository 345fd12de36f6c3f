"""Answers of any length: NDJSON, a JSON object on each line, in constant memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder

from annotation.selectors.snapshot import in_snapshot

NDJSON = "application/x-ndjson"


class NdjsonRenderer(JSONRenderer):
    """So that whoever asks for this type is answered; errors are JSON all the same."""

    media_type = NDJSON
    format = "ndjson"


def ndjson(pages: Callable[[], Iterator[Sequence[dict[str, Any]]]], *, name: str) -> StreamingHttpResponse:
    """The rows of all pages, read from one snapshot of the database while they are sent.

    An error on the way ends the answer without its end: of a chunked answer (HTTP/1.1) the client notices.
    """
    return StreamingHttpResponse(
        _lines(pages),
        content_type=NDJSON,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "private, no-store",
        },
    )


def _lines(pages: Callable[[], Iterator[Sequence[dict[str, Any]]]]) -> Iterator[bytes]:
    # In ASCII, as some readers of lines take other characters for the end of one, too.
    encode = json.JSONEncoder(separators=(",", ":"), default=JSONEncoder().default).encode
    with in_snapshot(pages) as found:
        for page in found:
            yield "".join(f"{encode(row)}\n" for row in page).encode()
