"""The three requests of the protocol, and what an answer of the server means.

Label Studio sends /setup the address of its site and a user's token, with which a backend can read files of
the site. HyPAC sends neither: a backend gets what it is asked about, and nothing to ask back with.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.outside.net import GuardedClient, NetError, NetResponse
from routing.sources.backends.base import BackendError
from routing.sources.backends.label_studio_ml.params import Params

# What says something of what was asked, and not of the server: no answer, or none that can be read.
OF_THE_ITEMS = frozenset({"timeout", "reset", "too_large", "protocol"})
AWAY = frozenset({429, 502, 503, 504})
LONGEST_WAIT = 30.0

# Parts of a sentence ...
SETUP_NO_OBJECT = failures.register(
    "ml_setup_no_object", gettext_noop("the answer to /setup is no JSON object")
)
NO_RESULTS = failures.register("ml_no_results", gettext_noop("the answer has no list of results"))
OTHER_NUMBER = failures.register(
    "ml_other_number", gettext_noop("%(count)s predictions came for %(items)s items")
)
TAKES_NONE = failures.register(
    "ml_takes_no_requests", gettext_noop("the server takes no requests now (status %(status)s)")
)
STATUS = failures.register("ml_status", gettext_noop("the server answered with status %(status)s"))
# ... and whole ones.
ACCESS_REFUSED = failures.register(
    "ml_access_refused",
    gettext_noop(
        "The server refuses access (status %(status)s). Enter name:password as the key of the source."
    ),
)
NO_SUCH_PATH = failures.register(
    "ml_no_such_path",
    gettext_noop(
        "The server knows no /%(path)s (status %(status)s). Is it a Label Studio ML backend, and is this its "
        "address, without /predict?"
    ),
)
LEADS_ON = failures.register(
    "ml_address_leads_on",
    gettext_noop(
        "The address leads on to another one (status %(status)s), which is not followed. Enter that one."
    ),
)


class _NoAnswerError(Exception):
    """There is no answer; `why` is a sentence, or a part of one."""

    why: HypacError

    @property
    def reason(self) -> str:
        """A part of a sentence, in English, as it is stored with an item."""
        return str(self.reason_part["words"]).rstrip(".")

    @property
    def reason_part(self) -> failures.Part:
        """`reason`, as a parameter of a failure."""
        return failures.clause(failures.part_of_error(self.why))


class UnansweredError(_NoAnswerError):
    """The server gave no usable answer to this request. `again`: it may to the same one, sent again."""

    def __init__(self, why: HypacError, *, again: bool = True) -> None:
        super().__init__(str(why))
        self.why, self.again = why, again


class AwayError(_NoAnswerError):
    """The server takes no requests now; `wait` are the seconds that it asks for, if it does."""

    def __init__(self, why: HypacError, wait: float | None = None) -> None:
        super().__init__(str(why))
        self.why, self.wait = why, wait


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
            raise UnansweredError(SETUP_NO_OBJECT.error())
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
            raise UnansweredError(NO_RESULTS.error())
        if len(results) != len(tasks):
            other = OTHER_NUMBER.error(count=len(results), items=len(tasks))
            raise UnansweredError(other, again=False)
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
            if error.kind in OF_THE_ITEMS:
                raise UnansweredError(error, again=not error.permanent) from None
            if error.permanent:
                raise BackendError.of(error) from None
            raise AwayError(error) from None


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
        raise ACCESS_REFUSED.error(raised_as=BackendError, status=status)
    if status in (404, 405):
        raise NO_SUCH_PATH.error(raised_as=BackendError, path=path, status=status)
    if 300 <= status < 400:
        raise LEADS_ON.error(raised_as=BackendError, status=status)
    if status in AWAY:
        raise AwayError(TAKES_NONE.error(status=status), _wait(response))
    raise UnansweredError(STATUS.error(status=status), again=status >= 500)


def _wait(response: NetResponse) -> float | None:
    """Seconds of Retry-After; a date is not read."""
    given = response.headers.get("retry-after", "")
    return min(float(given), LONGEST_WAIT) if given.isascii() and given.isdigit() and len(given) < 9 else None
