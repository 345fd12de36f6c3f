"""What the server's things have in common: an address and the fields of the last answer about them."""

import time
from collections.abc import Callable, Iterator, KeysView, Mapping
from typing import Any, Self, cast
from urllib.parse import parse_qsl, urlsplit

from hypac_client.errors import HypacError, WaitTimeoutError, does_not_fit
from hypac_client.texts import read_json
from hypac_client.transport import Params, Transport

FIRST_LOOK = 0.1
LONGEST_LOOK = 3.0
DEFAULT_WAIT = 24 * 3600.0
"""Seconds after which a wait ends where no other timeout is given."""

NUMBERS = ("id", "number")


class Resource:
    """One thing on the server. `thing["field"]` gives a field of the last answer, `"field" in thing` whether
    it has it, `dict(thing)` all of them; `refresh` asks again.
    """

    title_field = "id"
    data: Any
    """The fields of the last answer; each class says what they are."""

    def __init__(self, transport: Transport, path: str, data: Mapping[str, Any]) -> None:
        self._transport = transport
        self._path = path
        self.data = _fields_of_thing(data, path)

    def __getitem__(self, field: str) -> Any:
        return self.data[field]

    def __contains__(self, field: object) -> bool:
        return field in self.data

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def keys(self) -> KeysView[str]:
        return cast(KeysView[str], self.data.keys())

    def __repr__(self) -> str:
        state = f" {self.data['state']}" if "state" in self.data else ""
        return f"<{type(self).__name__} {self.data.get(self.title_field)}{state}>"

    def refresh(self) -> Self:
        self.data = _fields_of_thing(self._transport.get(self._path), self._path)
        return self

    def _change(self, method: str, fields: Mapping[str, Any]) -> Self:
        answer = self._transport.request(method, self._path, json=dict(fields))
        self.data = _fields_of_thing(answer, self._path)
        return self

    def _add(self, fields: Mapping[str, Any] | None) -> Self:
        """Take over an answer that says some of the fields."""
        self.data |= fields or {}
        return self

    def _get(self, below: str, params: Params | None = None) -> Any:
        path = f"{self._path}{below}"
        return _fields(self._transport.get(path, params), path)

    def _post(self, below: str, json: Any = None) -> Any:
        path = f"{self._path}{below}"
        answer = self._transport.request("POST", path, json={} if json is None else json)
        return None if answer is None else _fields(answer, path)


def pages(transport: Transport, path: str, params: Params | None = None) -> Iterator[Any]:
    """All entries of a list, dictionaries, page by page as they are read."""
    asked: dict[str, Any] = dict(params or {})
    seen = set[tuple[tuple[str, Any], ...]]()
    while True:
        answer = _fields(transport.get(path, asked), path)
        yield from answer["results"]
        following = answer.get("next")
        if not following:
            return
        # Of the next page's address only the query counts: the host is the one that the token is for.
        asked = dict(_query(following))
        if (page := tuple(sorted(asked.items()))) in seen:
            raise HypacError(f"{path}: the server leads to the same page again and again")
        seen.add(page)


def lines(transport: Transport, path: str, params: Params | None = None) -> Iterator[Any]:
    """The entries of an NDJSON answer, dictionaries, as they come, however many."""
    with transport.stream(path, params=params) as response:
        # Split at line ends alone: httpx's own lines end at U+2028 and others, which texts may hold.
        rest = b""
        for piece in response.iter_bytes():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield _parsed(line, path)
        if rest:
            yield _parsed(rest, path)


def until(
    look: Callable[[], bool], *, timeout: float | None, what: str, sleep: Callable[[float], None]
) -> None:
    """Look again and again, at first often, until `look` is content. Raises WaitTimeoutError."""
    end = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_LOOK
    while not look():
        if end is not None and time.monotonic() >= end:
            raise WaitTimeoutError(
                f"{what} after {timeout:g} seconds; it goes on and can be waited for again"
            )
        left = pause if end is None else max(0.0, end - time.monotonic())
        sleep(min(pause, left))
        pause = min(LONGEST_LOOK, pause * 1.3)


def _fields(answer: Any, path: str) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        raise does_not_fit(path, f"{type(answer).__name__}, where an object is wanted")
    return dict(answer)


def _fields_of_thing(answer: Any, path: str) -> dict[str, Any]:
    """With a number, where it is numbered."""
    fields = _fields(answer, path)
    for name in NUMBERS:
        if type(fields.get(name, 0)) is not int:
            raise does_not_fit(path, f"{name} is no number")
    return fields


def _query(address: str) -> Iterator[tuple[str, str]]:
    yield from parse_qsl(urlsplit(address).query, keep_blank_values=True)


def _parsed(line: bytes, path: str) -> dict[str, Any]:
    try:
        return dict(read_json(line))
    except (TypeError, ValueError):
        raise HypacError(f"{path} broke off in the middle of a line: {line[:80]!r}") from None
