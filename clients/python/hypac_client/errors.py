"""What can go wrong. Everything is a `HypacError`."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from hypac_client.models import Problem
from hypac_client.texts import read_json


class HypacError(Exception):
    """The server refused, did not answer, or answered with something else than it promised.

    `status` is the HTTP status, or None where there was no answer; `code` is the word that the server has
    for this error ("" of one that has none), by which a program tells errors of one status apart; `detail`
    says in words what is wrong, `field` which part of the request is at fault ("" where none is named),
    `errors` all messages by field, `faults` the field, code and detail of each, `retry_after` how many
    seconds the server asks to wait, 0 where it asks for none.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        field: str = "",
        errors: Mapping[str, Any] | None = None,
        retry_after: float = 0.0,
        code: str = "",
        faults: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.faults = list(faults or [])
        self.detail = detail
        self.status = status
        self.field = field
        self.errors = dict(errors or {})
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        wait = f", try again after {self.retry_after:.0f} seconds" if self.retry_after else ""
        return f"{where}{self.detail}" + (f" (HTTP {self.status}{wait})" if self.status else "")


class BadRequestError(HypacError):
    """400: something in the request is wrong; `faults` says what."""


class InvalidError(BadRequestError):
    """The same: every 400 is raised as this, its name since the first version."""


class AuthenticationError(HypacError):
    """401: the token is missing, wrong, expired or revoked."""


class NotAllowedError(HypacError):
    """403: the role, or the token, may not do this; or the project is archived."""


class NotFoundError(HypacError):
    """404: there is no such thing, or none that this token may see."""


class ConflictError(HypacError):
    """409: not now, as where somebody else was faster or a step is missing; `code` says which."""


class GoneError(HypacError):
    """410: the storage of the server has lost it."""


class ChangedError(HypacError):
    """412: it has changed since it was read (`If-Match`): read it again."""


class TooLargeError(HypacError):
    """413: more than the server takes at once."""


class MediaTypeError(HypacError):
    """415: what was sent is of a kind that is not taken there."""


class KeyReusedError(HypacError):
    """422: the idempotency key was used with another request."""


class RateLimitedError(HypacError):
    """429: too many requests, after all retries or with a longer wait than `Retries.longest_wait`."""


class ServerError(HypacError):
    """500 and above: the server failed, after all retries."""


class UnavailableError(ServerError):
    """503: not now; later it may be had."""


class JobError(HypacError):
    """Work in the background failed or was cancelled; `problems` has its first problems by line, of
    `problem_count` (`Job.all_problems` has all).
    """

    def __init__(
        self, detail: str, *, problems: Sequence[Problem] | None = None, problem_count: int = 0
    ) -> None:
        super().__init__(detail)
        self.problems = list(problems or [])
        self.problem_count = max(problem_count, len(self.problems))


class WaitTimeoutError(HypacError, TimeoutError):
    """What was waited for has not come; it goes on by itself and may be waited for again."""


class NotYetError(HypacError):
    """Something else has to be done first, mostly by people; the call may be repeated then."""


class ChecksumError(HypacError):
    """Bytes are not those that the server named; nothing was kept of them."""


def does_not_fit(path: str, why: str) -> HypacError:
    """For an answer that is JSON of another shape than HyPAC's."""
    return HypacError(
        f"{path} was answered by JSON that does not fit ({why}): is this the address of a HyPAC site?"
    )


_BY_STATUS: dict[int, type[HypacError]] = {
    400: InvalidError,
    401: AuthenticationError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    412: ChangedError,
    413: TooLargeError,
    415: MediaTypeError,
    422: KeyReusedError,
    429: RateLimitedError,
    503: UnavailableError,
}
MAX_TEXT = 300


def error_of(response: httpx.Response, *, retry_after: float = 0.0) -> HypacError:
    """The exception that an answer with an error stands for. Its body has to be read already."""
    status = response.status_code
    body: Any = None
    if "json" in response.headers.get("Content-Type", ""):
        try:
            body = read_json(response.content)
        except ValueError:
            body = None
    problem = body if isinstance(body, dict) else {}
    detail = problem.get("detail") or problem.get("title") or ""
    if not detail and response.is_redirect:
        detail = f"The server sends to {response.headers.get('Location', '?')}: use that address as url."
    if not detail and status == 404 and "html" in response.headers.get("Content-Type", ""):
        detail = "A web page answered, and no API: this address is no HyPAC site."
    if not detail:
        detail = f"{response.reason_phrase or 'No reason given'}: {response.text[:MAX_TEXT]}".strip(": ")
    errors, faults = problem.get("errors"), problem.get("faults")
    return _BY_STATUS.get(status, ServerError if status >= 500 else HypacError)(
        str(detail),
        status=status,
        field=str(problem.get("field") or ""),
        errors=errors if isinstance(errors, dict) else None,
        retry_after=retry_after,
        code=str(problem.get("code") or ""),
        faults=faults if isinstance(faults, list) else None,
    )
