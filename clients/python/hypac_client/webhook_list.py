"""The webhooks of a project. What they send is checked by `hypac_client.webhooks`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypac_client.models import WebhookData, WebhookDelivery
from hypac_client.resource import Resource, pages
from hypac_client.transport import Transport


class Webhook(Resource):
    """An address that is told of events."""

    title_field = "url"
    data: WebhookData

    @property
    def id(self) -> int:
        return int(self.data["id"])

    @property
    def secret(self) -> str:
        """What its messages are signed with; only after it was made or `rotate`, else empty."""
        return str(self.data.get("secret") or "")

    def update(self, **fields: Any) -> "Webhook":
        """Change what is given of `url`, `events`, `description`, `shape` and `active`."""
        return self._change("PATCH", fields)

    def rotate(self) -> str:
        """A new secret; the one before signs beside it for a day."""
        return self._add(self._post("rotate/")).secret

    def test(self) -> None:
        """Have a test sent to it."""
        self._post("test/")

    def deliveries(self, **filters: Any) -> Iterator[WebhookDelivery]:
        """Its messages, the newest first; filters: `state`, `event`."""
        return pages(self._transport, f"{self._path}deliveries/", filters)

    def remove(self) -> None:
        self._transport.request("DELETE", self._path)


class Webhooks:
    """`project.webhooks`."""

    def __init__(self, transport: Transport, project: str) -> None:
        self._transport = transport
        self._path = f"{project}webhooks/"

    def add(self, url: str, events: Sequence[str], **fields: Any) -> Webhook:
        """`fields`: `description`, `shape`. Keep its `secret`, which is told once."""
        body = {"url": url, "events": list(events), **fields}
        return self._webhook(self._transport.request("POST", self._path, json=body))

    def get(self, webhook_id: int) -> Webhook:
        return self._webhook(self._transport.get(f"{self._path}{webhook_id}/"))

    def __iter__(self) -> Iterator[Webhook]:
        return map(self._webhook, pages(self._transport, self._path))

    def _webhook(self, data: Mapping[str, Any]) -> Webhook:
        return Webhook(self._transport, f"{self._path}{data['id']}/", data)
