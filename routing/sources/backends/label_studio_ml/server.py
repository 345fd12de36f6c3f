"""The three requests of the protocol, and what an answer of the server means.

Label Studio sends /setup the address of its site and a user's token, with which a backend can read files of
the site. HyPAC sends neither: a backend gets what it is asked about, and nothing to ask back with.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from annotation.outside.net import GuardedClient, NetError, NetResponse
from routing.sources.backends.base import BackendError
from routing.sources.backends.label_studio_ml.params import Params

# What says something of what was asked, and not of the server: no answer, or none that can be read.
OF_THE_ITEMS = frozenset({"timeout", "reset", "too_large", "protocol"})
AWAY = frozenset({429, 502, 503, 504})
LONGEST_WAIT = 30.0


class UnansweredError(Exception):
    """The server gave no usable answer to this request. `again`: it may to the same one, sent again."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.again = reason, again


class AwayError(Exception):
    """The server takes no requests now; `wait` are the seconds that it asks for, if it does."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


class Server:
    """`predict` may be called by several threads. Each method raises UnansweredError, AwayError, or
    BackendError where no request can be answered."""

    def __init__(self, params: Params, api_key: str) -> None:
        self._params = params
        self._headers = {}
        if api_key:
            # "name:password" of the backend (its BASIC_AUTH_USER and BASIC_AUTH_PASS).
            self._headers["Authorization"] = f"Basic {base64.b64encode(api_key.encode()).decode()}"
        # Backends keep what belongs to a project under the number before the point.
        identity = hashlib.sha256(f"{params.url}\n{params.config.xml}".encode()).hexdigest()
        self._project = f"{int(identity[:7], 16)}.0"
        self._client = GuardedClient(
            connect_timeout=params.connect_timeout,
            read_timeout=params.read_timeout,
            total_timeout=params.total_timeout,
            max_connections=params.concurrency,
        )

    def health(self) -> None:
        self._request("GET", "health")

    def setup(self) -> str:
        """Announce the label configuration; returns the model version that the server names, "" for none."""
        said = self._request("POST", "setup", {"project": self._project, "schema": self._params.config.xml})
        if not isinstance(said, Mapping):
            raise UnansweredError("the answer to /setup is no JSON object")
        return version_of(said)

    def predict(self, tasks: Sequence[Mapping[str, Any]]) -> tuple[list[Any], str]:
        """One prediction for each of `tasks`, as the server gave it, and the model version that it names for
        all of them, "" for none."""
        said = self._request(
            "POST",
            "predict",
            {
                "tasks": list(tasks),
                "project": self._project,
                "label_config": self._params.config.xml,
                "params": {},
            },
        )
        results = said.get("results") if isinstance(said, Mapping) else None
        if not isinstance(results, list):
            raise UnansweredError("the answer has no list of results")
        if len(results) != len(tasks):
            raise UnansweredError(f"{len(results)} predictions came for {len(tasks)} items", again=False)
        return results, version_of(said)

    def close(self) -> None:
        self._client.close()

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self._params.url}/{path}"
        try:
            response = self._client.request(method, url, headers=self._headers, json=body)
            _judge(response, path)
            return response.json()
        except NetError as error:
            reason = error.message.rstrip(".")
            if error.kind in OF_THE_ITEMS:
                raise UnansweredError(reason, again=not error.permanent) from None
            if error.permanent:
                raise BackendError(error.message) from None
            raise AwayError(reason) from None


def version_of(said: Mapping[str, Any]) -> str:
    """The model version that an answer names, in a form that can be stored and shown; "" for none."""
    version = said.get("model_version")
    if not isinstance(version, str | int | float):
        return ""
    return "".join(sign if sign.isprintable() else "?" for sign in str(version)[:200])


def _judge(response: NetResponse, path: str) -> None:
    """Raise what a status other than 200 means. What the server writes with it is shown to nobody."""
    status = response.status
    if status in (200, 201):
        return
    if status in (401, 403):
        raise BackendError(
            f"The server refuses access (status {status}). Enter name:password as the key of the source."
        )
    if status in (404, 405):
        raise BackendError(
            f"The server knows no /{path} (status {status}). Is it a Label Studio ML backend, and is this "
            "its address, without /predict?"
        )
    if 300 <= status < 400:
        raise BackendError(
            f"The address leads on to another one (status {status}), which is not followed. Enter that one."
        )
    if status in AWAY:
        raise AwayError(f"the server takes no requests now (status {status})", _wait(response))
    raise UnansweredError(f"the server answered with status {status}", again=status >= 500)


def _wait(response: NetResponse) -> float | None:
    """Seconds of Retry-After; a date is not read."""
    given = response.headers.get("retry-after", "")
    return min(float(given), LONGEST_WAIT) if given.isascii() and given.isdigit() and len(given) < 9 else None
