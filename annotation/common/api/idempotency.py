"""The header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) of requests that write.

The same key with the same request gives the stored answer, marked by a header; with another request it is an
error. A body that is too large for memory is hashed while the view reads it.
"""

import hashlib
import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common import idempotency
from annotation.common.api.uploads import in_pieces
from annotation.errors import ConflictError, InputError
from annotation.models import KeyedRequest, User

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
KEPT_HEADERS = ("Content-Type", "Location", "ETag")
LARGEST_BODY = 1024**2
# Headers that make another request of it, beside its address and its body.
MEANT = ("If-Match",)
# What another try may cure; after 412 that is one with another If-Match.
NOT_KEPT = (409, 412, 429)
_KEY = re.compile(r'"?([\x21\x23-\x7e]{1,255})"?')
_CHUNK = 64 * 1024


class OtherRequest(APIException):
    status_code = 422

    def __init__(self) -> None:
        super().__init__(_("This Idempotency-Key came with another request before. Take a new key."))


class AtWork(APIException):
    """With a Retry-After, by which a program knows it from other conflicts."""

    status_code = 409
    wait = 1

    def __init__(self) -> None:
        super().__init__(_("The first request with this Idempotency-Key is still being worked on."))


class Answered(Exception):
    """The request was answered before, and this is what was answered."""

    def __init__(self, response: HttpResponse) -> None:
        self.response = response


class _Hashed:
    """The stream of a body, which hashes what is read from it."""

    def __init__(self, stream: Any, length: int = 0) -> None:
        self.stream, self.length = stream, length
        self.digest, self.size = hashlib.sha256(), 0

    def read(self, *args: Any) -> bytes:
        return self._seen(self.stream.read(*args))

    def readline(self, *args: Any) -> bytes:
        return self._seen(self.stream.readline(*args))

    def broke_off(self) -> bool:
        """Whether less came than was said, which another try may cure."""
        return self.size < self.length

    def full_digest(self) -> str:
        """Of all of it. What is larger than anything that is taken in is read no further."""
        most = settings.HYPAC_MAX_UPLOAD_BYTES + _CHUNK
        while self.size <= most and self.read(_CHUNK):
            pass
        return self.digest.hexdigest()

    def _seen(self, data: bytes) -> bytes:
        self.digest.update(data)
        self.size += len(data)
        return data


class Keyed:
    """A request with a key that is new, until its answer is stored."""

    def __init__(self, row: KeyedRequest, hashed: _Hashed | None) -> None:
        self.row, self.hashed = row, hashed

    def forget(self) -> None:
        idempotency.forget(self.row)

    def settle(self, response: Any, *, secret: bool) -> None:
        """Store the answer, once it has been written."""
        if response.status_code >= 500 or response.status_code in NOT_KEPT:
            self.forget()
        elif isinstance(response, Response) and not response.is_rendered:
            response.add_post_render_callback(lambda rendered: self._store(rendered, secret))
        else:
            self._store(response, secret)

    def _store(self, response: Any, secret: bool) -> None:
        hidden = (secret and response.status_code < 400) or response.streaming
        body = None if hidden or len(response.content) > LARGEST_BODY else response.content
        content = self.hashed.full_digest() if self.hashed else self.row.content
        if self.hashed and self.hashed.broke_off():
            self.forget()
            return
        idempotency.finish(
            self.row,
            content=content,
            status=response.status_code,
            headers={name: response.headers[name] for name in KEPT_HEADERS if name in response.headers},
            body=body,
        )


def begin_idempotent(request: Request) -> Keyed | None:
    """None for a request without a key. Raises Answered for one that was answered before, and what is wrong
    with one that cannot be taken up.
    """
    sent = request.headers.get(HEADER)
    if sent is None or request.method not in WRITES:
        return None
    found = _KEY.fullmatch(sent)
    if found is None:
        raise InputError(_("A key has 1 to 255 visible ASCII characters."), where=HEADER)
    user = request.user
    if not isinstance(user, User):
        return None
    address = _address(request)
    content, hashed = _content(request)
    row, new = idempotency.begin(user=user, key=found[1], address=address, content=content)
    if new:
        _refuse_too_many(user, row)
        return Keyed(row, hashed)
    if row.address != address or (content and row.content and row.content != content):
        raise OtherRequest
    if idempotency.died(row):
        raise ConflictError(
            _(
                "The first request with this Idempotency-Key broke off in the server: nobody knows whether "
                "it was done. Look whether it was; if not, send it with a new key."
            )
        )
    if row.status is None:
        raise AtWork
    if hashed is not None and hashed.full_digest() != row.content:
        raise _cut_off() if hashed.broke_off() else OtherRequest()
    raise Answered(_again(row))


def _refuse_too_many(user: User, row: KeyedRequest) -> None:
    if (wait := idempotency.full_for(user)) is None:
        return
    idempotency.forget(row)
    raise Throttled(
        wait.total_seconds(),
        _("At most %(most)s requests with an Idempotency-Key are kept of each person, for %(hours)s hours.")
        % {"most": f"{idempotency.MOST_KEYS:,}", "hours": idempotency.KEPT // timedelta(hours=1)},
    )


def _address(request: Request) -> str:
    """Method and address, and below them the headers that say what is meant. Of a form's type without its
    boundary, which each try has of its own.
    """
    kind = (request.content_type or "").strip().lower()
    sent = {"Content-Type": kind.partition(";")[0] if kind.startswith("multipart/") else kind}
    sent |= {name: request.headers.get(name, "") for name in MEANT}
    meant = "".join(f"\n{name}: {value}" for name, value in sent.items() if value)
    return f"{request.method} {request.get_full_path()}{meant}"


def _again(row: KeyedRequest) -> HttpResponse:
    if row.body is None:
        raise ConflictError(
            _(
                "This request was done before. Its answer is not kept, as it held a secret, was large, or "
                "many others came after it."
            )
        )
    response = HttpResponse(bytes(row.body), status=row.status, headers=row.headers)
    response.headers[REPLAYED] = "true"
    return response


def _content(request: Request) -> tuple[str, _Hashed | None]:
    """The SHA-256 of the body; of one that is too large to be read at once "" and its hashing stream."""
    kind = request.content_type or ""
    if kind.startswith("multipart/"):  # each try has its own boundary: what is in it counts
        return _of_form(request), None
    inner: Any = request._request
    if in_pieces(request):
        inner.META["wsgi.input"] = hashed = _Hashed(inner.META["wsgi.input"])
        return "", hashed
    length = int(request.META.get("CONTENT_LENGTH") or "0")
    if length <= (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0):
        if len(inner.body) < length:
            raise _cut_off()
        return hashlib.sha256(inner.body).hexdigest(), None
    inner._stream = hashed = _Hashed(inner._stream, length)
    return "", hashed


def _cut_off() -> InputError:
    return InputError(_("The request broke off: not all of its body came. Send it again."))


def _of_form(request: Request) -> str:
    digest = hashlib.sha256()
    for name in sorted(request.POST):
        digest.update(repr((name, request.POST.getlist(name))).encode())
    for name in sorted(request.FILES):
        for file in request.FILES.getlist(name):
            digest.update(repr((name, file.name, file.size)).encode())
            for chunk in file.chunks(_CHUNK):
                digest.update(chunk)
            file.seek(0)
    return digest.hexdigest()
