"""The header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) of requests that write.

The same key with the same request gives the stored answer, marked by a header; with another request it is an
error. A body that is too large for memory is hashed while the view reads it. The unique constraint on person
and key decides between two at once.
"""

import hashlib
import json
import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Min, QuerySet, Sum
from django.db.models.functions import Length
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.uploads import is_chunked
from annotation.errors import ConflictError, InputError
from annotation.models import KeyedRequest, Project, User

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
    default_code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__(_("This Idempotency-Key came with another request before. Take a new key."))


class AtWork(APIException):
    """With a Retry-After."""

    status_code = 409
    default_code = "request_at_work"
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
        forget(self.row)

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
        finish(
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
    row, new = begin(user=user, key=found[1], address=address, content=content)
    if new:
        _refuse_too_many(user, row)
        return Keyed(row, hashed)
    if row.address != address or (content and row.content and row.content != content):
        raise OtherRequest
    if died(row):
        raise ConflictError(
            _(
                "The first request with this Idempotency-Key broke off in the server: nobody knows whether "
                "it was done. Look whether it was; if not, send it with a new key."
            ),
            code="request_broke_off",
        )
    if row.status is None:
        raise AtWork
    if hashed is not None and hashed.full_digest() != row.content:
        raise _cut_off() if hashed.broke_off() else OtherRequest()
    raise Answered(_again(row))


def _refuse_too_many(user: User, row: KeyedRequest) -> None:
    if (wait := full_for(user)) is None:
        return
    forget(row)
    raise Throttled(
        wait.total_seconds(),
        _("At most %(most)s requests with an Idempotency-Key are kept of each person, for %(hours)s hours.")
        % {"most": f"{MOST_KEYS:,}", "hours": KEPT // timedelta(hours=1)},
        code="too_many_keys",
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
                "This request was done before. Its answer is not kept, as it held a secret, was large, many "
                "others came after it, or something in it was erased."
            ),
            code="answer_not_kept",
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
    if is_chunked(request):
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
    words = _("The request broke off: not all of its body came. Send it again.")
    return InputError(words, code="body_cut_off")


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


# --- What is stored of them ---------------------------------------------------------------------------------

KEPT = timedelta(hours=24)
# After so long a request that never came to an end is taken to have died with its process. Whether that was
# before or after it took effect, nobody knows, so it is not done again under its key.
GIVEN_UP = timedelta(hours=1)
# Of one person. Of the oldest answers beyond the bytes it stays known that they were given.
MOST_KEYS = 100_000
MOST_BYTES = 50 * 2**20
# One answer has at most a MiB, so this is looked after now and then.
LOOKED_AFTER_EVERY = 20
# Seconds. Between them new keys are added up in the cache, where other processes may not see all of them.
COUNTED_EVERY = 600


def begin(*, user: User, key: str, address: str, content: str) -> tuple[KeyedRequest, bool]:
    """The request of this key, and whether it is new. `content` is "" while its body has not been read."""
    while True:
        _over().filter(user=user, key=key).delete()
        try:
            with transaction.atomic():
                new = KeyedRequest.objects.create(
                    user=user, key=key, address=address, content=content, created_at=timezone.now()
                )
            return new, True
        except IntegrityError:
            if known := KeyedRequest.objects.filter(user=user, key=key).first():
                return known, False


def finish(
    request: KeyedRequest, *, content: str, status: int, headers: dict[str, str], body: bytes | None
) -> None:
    """Keep what was answered; without a body only that it was done."""
    KeyedRequest.objects.filter(pk=request.pk).update(
        content=content, status=status, headers=headers, body=body
    )
    if request.pk % LOOKED_AFTER_EVERY == 0:
        make_room(user_id=request.user_id)


def make_room(*, user_id: int) -> None:
    """Keep of a person's oldest answers only that they were given, where all together are too large."""
    size = Length("body")
    kept = KeyedRequest.objects.filter(user=user_id, body__isnull=False)
    over = (kept.order_by().aggregate(total=Sum(size))["total"] or 0) - MOST_BYTES
    if over <= 0:
        return
    for pk, length in kept.order_by("pk").values_list("pk", size).iterator():
        over -= length
        if over <= 0:
            kept.filter(pk__lte=pk).order_by().update(body=None)
            return


def forget_answers_of_project(project: Project) -> None:
    """Keep of answers to requests under its address only that they were given: they may tell its content."""
    here = f"/projects/{project.slug}/"
    KeyedRequest.objects.filter(body__isnull=False, address__contains=here).update(body=None)


def forget_answers_naming(*words: str) -> None:
    """The same of answers, to whomever, that have one of `words`, in a sentence or alone, in any case."""
    written = [form for word in words if word for form in (word, json.dumps(word)[1:-1])]
    if not written:
        return
    naming = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, written))})(?!\w)", re.IGNORECASE)
    kept = KeyedRequest.objects.filter(body__isnull=False).order_by()
    rows = kept.values_list("pk", "body").iterator(chunk_size=100)
    told = [pk for pk, body in rows if naming.search(bytes(body or b"").decode(errors="replace"))]
    for start in range(0, len(told), 500):
        kept.filter(pk__in=told[start : start + 500]).update(body=None)


def full_for(user: User) -> timedelta | None:
    """How long until the person may use a new key again; None where they may now."""
    now = timezone.now()
    mine = KeyedRequest.objects.filter(user=user).order_by()
    # Counting many keys takes longer than most requests do: in the cache is how many there are, or until when
    # there are too many.
    name = f"keyed-requests:{user.pk}:{int(now.timestamp()) // COUNTED_EVERY}"
    known: int | datetime | None = cache.get(name)
    if isinstance(known, datetime) and known > now:
        return known - now
    kept = known + 1 if isinstance(known, int) else MOST_KEYS + 1
    if kept > MOST_KEYS:
        kept = mine.count()
    if kept <= MOST_KEYS:
        cache.set(name, kept, COUNTED_EVERY)
        return None
    oldest = mine.aggregate(oldest=Min("created_at"))["oldest"] or now
    until = max(oldest + KEPT, now + timedelta(seconds=1))
    cache.set(name, until, COUNTED_EVERY)
    return until - now


def forget(request: KeyedRequest) -> None:
    """As if it had not been sent: what may go better next time is not kept."""
    KeyedRequest.objects.filter(pk=request.pk).delete()


def died(request: KeyedRequest) -> bool:
    """Whether its process ended before there was an answer."""
    return request.status is None and request.created_at < timezone.now() - GIVEN_UP


def forget_old() -> None:
    if _over().exists():  # else without a write, for which SQLite has one lock
        _over().delete()


def _over() -> QuerySet[KeyedRequest]:
    return KeyedRequest.objects.filter(created_at__lt=timezone.now() - KEPT)
