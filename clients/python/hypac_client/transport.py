"""Requests with a token: retried where that is safe and may help, errors as exceptions."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import httpx

from hypac_client.errors import HypacError, error_of
from hypac_client.retries import Retries, is_at_work, may_be_retried, retry_after
from hypac_client.texts import printable, read_json

READS = frozenset({"GET", "HEAD"})
MOST_SHOWN = 200
LARGEST_ANSWER, LARGEST_FILE = 100 * 10**6, 2**31
"""Most bytes of an answer, and of a file that is not read piece by piece; unpacked, few may be many."""

Params = Mapping[str, Any]


class Transport:
    """Talks to one server in the name of one token, which nothing here shows or logs."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float,
        retries: Retries | None,
        http: httpx.BaseTransport | None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = address_of(url)
        self.retries = retries or Retries()
        self._patience = timeout
        self.sleep = sleep
        self.answered = ""
        """The path that answered last."""
        # Redirects are not followed: a token goes to the host it was given for, and to no other.
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Token {token}", "Accept": "application/json"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=http,
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, params: Params | None = None) -> Any:
        return self.request("GET", path, params=params)

    def request(
        self, method: str, path: str, *, json: Any = None, params: Params | None = None, keyed: bool = True
    ) -> Any:
        """The parsed answer, None where it has no body. `keyed=False`: a write that does no harm when it is
        done twice, without a key, of which the server keeps so many of each person.
        """
        return _parsed(self._send(method, path, headers={}, json=json, params=params, keyed=keyed), path)

    def upload(self, path: str, file: IO[bytes], *, media_type: str, params: Params | None = None) -> Any:
        """POST a file from its start; of each attempt anew."""
        headers = {"Content-Type": media_type}
        return _parsed(self._send("POST", path, headers=headers, file=file, params=params), path)

    def content(self, path: str, most: int = LARGEST_FILE) -> bytes:
        """A whole file of at most so many bytes."""
        return self._send("GET", path, headers={"Accept": "*/*"}, most=most).content

    @contextmanager
    def stream(
        self, path: str, *, params: Params | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx.Response]:
        """An answer that is read piece by piece. What breaks off in the middle is an error."""
        asked = {"Accept": "*/*", **(headers or {})}
        response = self._send("GET", path, headers=asked, params=params, stream=True)
        try:
            yield response
        except httpx.RequestError as error:  # DecodingError, too, which is no TransportError
            raise HypacError(f"{path} broke off: {str(error) or type(error).__name__}") from error
        finally:
            response.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        json: Any = None,
        file: IO[bytes] | None = None,
        params: Params | None = None,
        stream: bool = False,
        keyed: bool = True,
        most: int = LARGEST_ANSWER,
    ) -> httpx.Response:
        _check_within(path)
        # One key for all attempts: a write whose answer was lost is done once.
        own = {"Idempotency-Key": str(uuid4())} if keyed and method not in READS else {}
        sent = {name: value for name, value in (params or {}).items() if value is not None}
        # httpx takes `params` in place of a query that the path has, even where there are none.
        address = httpx.URL(path).copy_merge_params(sent) if sent else path
        attempt, looks, patience = 1, 0, self._patience
        while True:
            if file is not None:
                file.seek(0)
            request = self._http.build_request(
                method, address, json=json, content=file, headers={**own, **headers}
            )
            last = attempt >= self.retries.attempts
            try:
                response = self._http.send(request, stream=True)
                if not (stream and response.is_success):
                    response = _whole(response, path, most)
            except httpx.RequestError as error:
                if last:
                    reason = str(error) or type(error).__name__
                    raise HypacError(f"{self.url} does not answer: {reason}") from error
                self.sleep(self.retries.pause(attempt))
                attempt += 1
                continue
            if response.is_success:
                self.answered = path
                return response
            asked = retry_after(response)
            # Whoever lost the answer to the first attempt waits for its end as long as for an answer.
            at_work = bool(own) and is_at_work(response) and patience > 0
            again = at_work or (may_be_retried(response) and not last)
            if not again or asked > self.retries.longest_wait:
                raise error_of(response, retry_after=asked)
            pause = max(asked, self.retries.pause(attempt + looks))
            self.sleep(pause)
            if at_work:
                looks, patience = looks + 1, patience - pause
            else:
                attempt += 1


def address_of(url: str) -> str:
    """The site's address, as others are made of it. Raises ValueError for what is none."""
    no_address = ValueError(
        "url is the site's address, as in https://labels.example.org, without a name in it"
    )
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # brackets or a port that are none
        raise no_address from None
    if not known or "@" in parts.netloc or not url.isprintable():
        raise no_address
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _check_within(path: str) -> None:
    """Raises HypacError for an address of another server, or above the API's own, as the token goes with it;
    and for what is none.
    """
    try:
        httpx.URL(path)
        parts = urlsplit(path)
        elsewhere = parts.scheme or parts.netloc or path.startswith(("/", "\\"))
    except (httpx.InvalidURL, ValueError):
        parts, elsewhere = None, True
    if parts is None or elsewhere or ".." in unquote(parts.path).split("/"):
        shown = printable(path[:MOST_SHOWN])
        raise HypacError(f"{shown}: a path below /api/v1/ is wanted, as in projects/birds/")


def _whole(response: httpx.Response, path: str, most: int) -> httpx.Response:
    """The answer with all of its body, unpacked and at most so many bytes."""
    pieces, size = list[bytes](), 0
    try:
        for piece in response.iter_bytes():
            size += len(piece)
            if size > most:
                raise HypacError(
                    f"{path} was answered by more than {most:,} bytes, which nothing here reads",
                    status=response.status_code,
                )
            pieces.append(piece)
    finally:
        response.close()
    headers = response.headers.copy()
    headers.pop("Content-Encoding", None)  # it is unpacked already
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=b"".join(pieces),
        request=response.request,
        extensions=response.extensions,
    )


def _parsed(response: httpx.Response, path: str) -> Any:
    if response.status_code == 204 or not response.content:
        return None
    try:
        return read_json(response.content)
    except ValueError:
        message = f"{path} was answered by something else than JSON: is this the address of a HyPAC site?"
        raise HypacError(message, status=response.status_code) from None
