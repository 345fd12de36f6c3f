"""Where everything begins."""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

import httpx

from hypac_client.invitations import Invitation
from hypac_client.models import Me
from hypac_client.projects import Project
from hypac_client.resource import pages
from hypac_client.retries import Retries
from hypac_client.transport import Params, Transport


class Projects:
    """`client.projects`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        choices: Sequence[str | Mapping[str, Any]] = (),
        **fields: Any,
    ) -> Project:
        """Make a project, with the API's fields; a choice is its name, or its fields."""
        if choices:
            fields["choices"] = [{"name": one} if isinstance(one, str) else dict(one) for one in choices]
        return Project(
            self._transport, self._transport.request("POST", "projects/", json={"name": name, **fields})
        )

    def get(self, slug: str) -> Project:
        return Project(self._transport, self._transport.get(f"projects/{slug}/"))

    def __iter__(self) -> Iterator[Project]:
        """Those that the owner of the token is a member of."""
        for entry in pages(self._transport, "projects/"):
            yield Project(self._transport, entry)


class Client:
    """A HyPAC site, in the name of the token's owner.

    >>> with Client("https://labels.example.org", token) as client:
    ...     project = client.projects.get("reviews")

    `timeout` counts seconds of silence, not of a whole transfer. One client may be used by several threads.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if not token or not token.isascii() or any(sign.isspace() for sign in token):
            raise ValueError(
                "token is what the site showed when the token was made, without spaces around it"
            )
        self._transport = Transport(url, token, timeout=timeout, retries=retries, http=transport)
        self.projects = Projects(self._transport)

    def __repr__(self) -> str:
        return f"<Client {self._transport.url}>"

    @property
    def url(self) -> str:
        """The site's address."""
        return self._transport.url

    @property
    def answered(self) -> str:
        """The path, below /api/v1/, of what the site answered last; empty before it has."""
        return self._transport.answered

    def me(self) -> Me:
        """Whose token this is, and how far it goes."""
        return cast(Me, self._transport.get("me/"))

    def invitations(self) -> Iterator[Invitation]:
        """Those that wait for the answer of the token's owner. It must have neither a role nor a project."""
        for entry in pages(self._transport, "invitations/"):
            yield Invitation(self._transport, f"invitations/{entry['id']}/", entry)

    def request(self, method: str, path: str, *, json: Any = None, params: Params | None = None) -> Any:
        """Anything else of the API, by its path below /api/v1/; retried and checked as the rest."""
        return self._transport.request(method, path.lstrip("/"), json=json, params=params)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
