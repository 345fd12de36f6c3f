"""Files and streams of lines that come as the body of a request: never read into memory."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.utils.mediatypes import media_type_matches

from annotation.common.api.streams import NDJSON
from annotation.common.files import BLOCK, store_file
from annotation.errors import InputError
from annotation.models import Project, StoredFile


class TooLargeError(APIException):
    status_code = 413
    default_code = "too_large"


class LengthRequired(APIException):
    status_code = 411
    default_code = "length_required"


class RawParser(BaseParser):
    """For views that read the body themselves, with `receive_body`; it says which type they take."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        raise InputError(_("This body is read as it comes."))


class TakesStream:
    """Of a view that reads its body with `receive_body`: it may be as large as a file may be."""

    takes_files = True
    stream_type = NDJSON

    def get_parsers(self) -> list[Any]:
        return [RawParser(self.stream_type)]


def is_chunked(request: Request) -> bool:
    """Whether nobody has told how long the body is: it ends where the server says (a chunked body)."""
    return not request.META.get("CONTENT_LENGTH") and bool(request.META.get("wsgi.input_terminated"))


def refuse_chunked(request: Request) -> None:
    """Django would read nothing of such a body, and do what was asked without it. Raises LengthRequired."""
    raw = any(isinstance(parser, RawParser) for parser in request.parsers or ())
    if not raw and is_chunked(request) and request.headers.get("Transfer-Encoding"):
        raise LengthRequired(_("Send the body with its Content-Length, not in chunks."))


@contextmanager
def receive_body(request: Request) -> Iterator[IO[bytes]]:
    """The whole body in a temporary file. Its type has to be one that the view's parsers take.

    Raises InputError for an empty body and for one that breaks off, TooLargeError for more than
    HYPAC_MAX_UPLOAD_BYTES.
    """
    takes = [parser.media_type for parser in request.parsers or ()]
    if not any(media_type_matches(media_type, request.content_type) for media_type in takes):
        raise UnsupportedMediaType(request.content_type)
    most = settings.HYPAC_MAX_UPLOAD_BYTES
    with tempfile.SpooledTemporaryFile(BLOCK, dir=settings.FILE_UPLOAD_TEMP_DIR) as kept:
        size = 0
        body = _body_of(request)
        while block := body.read(BLOCK):
            size += len(block)
            if size > most:
                words = _("One request may have at most %(limit)s bytes.") % {"limit": f"{most:,}"}
                raise TooLargeError(words)
            kept.write(block)
        length = request.META.get("CONTENT_LENGTH") or str(size)
        if length != str(size):
            raise InputError(_("The request broke off: not all of its body came. Send it again."))
        if not size:
            raise InputError(_("The body is empty. Send the content of the file as the body."))
        kept.seek(0)
        yield kept


def stored_lines(project: Project, content: IO[bytes]) -> StoredFile:
    """Lines that came as a body, as a file of the project. Items without an id are named by the file and the
    line: two bodies must not have one name.
    """
    digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    return store_file(
        project=project, content=content, original_name=f"sent-{digest[:8]}.ndjson", media_type=NDJSON
    )


def _body_of(request: Request) -> Any:
    """Of a body in pieces Django reads nothing."""
    return request.META["wsgi.input"] if is_chunked(request) else request._request
