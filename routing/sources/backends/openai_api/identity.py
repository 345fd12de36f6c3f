"""What a server says that it serves."""

import re
from collections.abc import Mapping
from threading import Lock
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import InputError
from annotation.outside.net import GuardedClient, NetError, NetResponse
from routing.sources.backends.base import BackendError
from routing.sources.backends.openai_api.params import Params

SECONDS = 10.0
LISTED = 10
# What stays the same as long as the model does; times of starting and access rights do not.
IDENTITY = ("root", "parent", "owned_by", "revision", "sha", "version", "quantization")
MOST = 200
# A number, and no further word: another size or kind of the model has a name that begins alike.
_VERSION = re.compile(r"|-latest|-v?[0-9][0-9.-]*|[@:].*")

NOT_REACHED = failures.register(
    "model_server_not_reached", gettext_noop("The model server cannot be reached: %(why)s")
)
KEY_REFUSED = failures.register(
    "api_key_refused_by_list", gettext_noop("The server refuses the API key (%(status)s).")
)
NO_ANSWER_NOW = failures.register(
    "no_list_now", gettext_noop("The model server does not answer now (status %(status)s).")
)
NOT_LISTED = failures.register(
    "model_not_listed",
    gettext_noop("The server does not list this model; it lists %(known)s%(more)s."),
)
NONE = gettext_noop("none")
MORE = failures.register("and_more", gettext_noop(" and %(count)s more"))
OTHER_MODEL = failures.register(
    "other_model_behind_address",
    gettext_noop(
        "The server now answers as %(name)r, and not as %(expected)r: another model is "
        "behind this address. Items that the right one has answered are kept. Start the "
        "right model again, or make a source of the other one. If it is the right one by "
        "another name, enter that name (answers_as)."
    ),
)
AT_V1 = failures.register(
    "list_at_v1", gettext_noop("The server's list of models is at %(url)s/v1: enter that.")
)


def served_model(params: Params, api_key: str) -> dict[str, Any]:
    """The entry of the model in the server's list, as far as it tells what model it is; empty where the
    server has no list.

    Raises InputError, its `where` naming the param, where the model is not in it or the list is refused, and
    BackendError, to be tried again, where the server does not answer.
    """
    try:
        response = _get(params, api_key, "/models")
    except NetError as error:
        if error.permanent:
            raise InputError.of(error, where="url") from None
        why = failures.part_of_error(error)
        raise NOT_REACHED.error(raised_as=BackendError, permanent=False, why=why) from None
    if response.status in (401, 403):
        raise KEY_REFUSED.error(raised_as=InputError, where="api_key", status=response.status)
    if response.status >= 500 or response.status == 429:
        raise NO_ANSWER_NOW.error(raised_as=BackendError, permanent=False, status=response.status)
    entries = _entries(response)
    if entries is None:
        _hint_at_v1(params, api_key)
        return {}
    for entry in entries:
        if entry["id"] == params.model:
            return _identity(entry)
    known = ", ".join(entry["id"][:60] for entry in entries[:LISTED]) or failures.term(NONE)
    more = MORE.part(count=len(entries) - LISTED) if len(entries) > LISTED else ""
    raise NOT_LISTED.error(raised_as=InputError, where="model", known=known, more=more)


class Signature:
    """The name under which answers come: the same from the first one on."""

    def __init__(self, model: str, served: Mapping[str, Any], answers_as: str = "") -> None:
        self._asked = answers_as or model
        listed = {str(served[name]) for name in ("model", "root") if served.get(name)}
        names = {answers_as} if answers_as else {model, *listed}
        self._aliases = {name.casefold().removesuffix("-latest") for name in names}
        self._lock = Lock()
        self._name: str | None = None

    def check(self, name: Any) -> str:
        """The name in an answer. Raises BackendError where another model has answered."""
        if not isinstance(name, str) or not name:
            return ""
        with self._lock:
            if self._name is None and self._plausible(name):
                self._name = name
            if name == self._name:
                return name
            expected = self._name or self._asked
        raise OTHER_MODEL.error(raised_as=BackendError, name=name[:80], expected=expected[:80])

    def _plausible(self, name: str) -> bool:
        """An alias, with a date or version ("gpt-x" answers as "gpt-x-2026-01-31", "model" as "model@main"),
        or the path of its file or folder."""
        name = name.casefold()
        for alias in self._aliases:
            if name.startswith(alias) and _VERSION.fullmatch(name[len(alias) :]):
                return True
        return _last(name) in {_last(alias) for alias in self._aliases}


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _get(params: Params, api_key: str, path: str) -> NetResponse:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    client = GuardedClient(
        connect_timeout=min(SECONDS, params.connect_timeout), read_timeout=SECONDS, total_timeout=SECONDS
    )
    try:
        return client.request("GET", f"{params.url}{path}", headers=headers)
    finally:
        client.close()


def _entries(response: NetResponse) -> list[dict[str, Any]] | None:
    try:
        body = response.json() if response.status == 200 else None
    except NetError:
        return None
    entries = body.get("data") if isinstance(body, dict) else None
    if not isinstance(entries, list):
        return None
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _identity(entry: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"model": entry["id"][:MOST]}
    meta = entry.get("meta")  # llama.cpp's: sizes of the file
    for source in (entry, meta if isinstance(meta, Mapping) else {}):
        names = IDENTITY if source is entry else sorted(source)
        for name in names:
            value = source.get(name)
            if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                found[name] = value[:MOST] if isinstance(value, str) else value
    return found


def _hint_at_v1(params: Params, api_key: str) -> None:
    """Raises InputError where the address only lacks its /v1."""
    if params.url.endswith("/v1"):
        return
    try:
        found = _entries(_get(params, api_key, "/v1/models"))
    except NetError:
        return
    if found is not None:
        raise AT_V1.error(raised_as=InputError, where="url", url=params.url)
