"""Answers that are no JSON: files, and NDJSON of any length, an object on each line, in constant memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder

from annotation.common.snapshot import in_snapshot

NDJSON = "application/x-ndjson"


class NdjsonRenderer(JSONRenderer):
    """So that whoever asks for this type is answered; errors are JSON all the same."""

    media_type = NDJSON
    format = "ndjson"


class AnyType(BaseContentNegotiation):
    """A file has the type that it has; only errors are rendered."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


def ndjson(pages: Callable[[], Iterator[Sequence[dict[str, Any]]]], *, name: str) -> StreamingHttpResponse:
    """The rows of all pages, read from one snapshot of the database while they are sent.

    An error on the way ends the answer without its end: of a chunked answer (HTTP/1.1) the client notices.
    """
    return StreamingHttpResponse(
        _lines(pages),
        content_type=NDJSON,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _lines(pages: Callable[[], Iterator[Sequence[dict[str, Any]]]]) -> Iterator[bytes]:
    # In ASCII, as some readers of lines take other characters for the end of one, too.
    encode = json.JSONEncoder(separators=(",", ":"), default=JSONEncoder().default).encode
    with in_snapshot(pages) as found:
        for page in found:
            yield "".join(f"{encode(row)}\n" for row in page).encode()
