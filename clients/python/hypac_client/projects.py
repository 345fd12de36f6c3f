"""Projects, and what is in them."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self, cast

from hypac_client.deliveries import Delivery
from hypac_client.images import image_of, name_of, save
from hypac_client.jobs import Job
from hypac_client.models import (
    ErasedItems,
    Item,
    Label,
    Outlook,
    PeopleOutlook,
    Prediction,
    Preview,
    ProjectData,
    SentInvitation,
    StoredFile,
)
from hypac_client.queue import DEFAULT_LEASE, Queue
from hypac_client.records import BYTES, NDJSON, Records, spooled
from hypac_client.resource import Resource, lines, pages
from hypac_client.runs import Run
from hypac_client.sources import Sources
from hypac_client.transport import Transport
from hypac_client.webhook_list import Webhooks


class Project(Resource):
    title_field = "slug"
    data: ProjectData

    def __init__(self, transport: Transport, data: Mapping[str, Any]) -> None:
        super().__init__(transport, f"projects/{data['slug']}/", data)
        self.sources = Sources(transport, self._path)
        self.webhooks = Webhooks(transport, self._path)

    @property
    def slug(self) -> str:
        return str(self.data["slug"])

    def update(self, **fields: Any) -> Self:
        """Change what is given of the API's fields: `name`, `guidelines`, `budget`, ..."""
        return self._change("PATCH", fields)

    def delete(self) -> None:
        """Delete it with all that is in it. Only its owner may; nothing brings it back."""
        name = str(self._transport.get(self._path)["name"])
        self._transport.request("DELETE", self._path, params={"name": name})

    def preview(
        self, path: str | PathLike[str], *, format: str = "", encoding: str = "", rows: int = 5
    ) -> Preview:
        """What a file seems to be: `format`, `columns`, the first `rows`, `problems`, and which column seems
        to be what (`suggestion`). It is stored, and nothing is imported; `import_data` of the same file does.
        """
        asked = {"format": format or None, "encoding": encoding or None, "rows": rows}
        return cast(Preview, self._get(f"files/{self._send_file(Path(fspath(path)))}/preview/", asked))

    def import_data(
        self,
        data: Records | str | PathLike[str],
        *,
        id_column: str = "",
        text_column: str = "",
        field_columns: Sequence[str] = (),
        text_format: str = "",
        format: str = "",
        encoding: str = "",
        keep_labels: bool = False,
        add_duplicates: bool = False,
    ) -> Job:
        """Add items from a file (a path; any format that the site reads), a DataFrame or dictionaries.

        `format` and `encoding`: of a file that does not tell them itself.

        `keep_labels`: what people said of the items in the program that wrote the file, HyPAC too, becomes
        labels.
        `add_duplicates`: rows whose content is in the project under other names are added once more.
        """
        fields = {
            "id_column": id_column,
            "text_column": text_column,
            "field_columns": list(field_columns),
            "text_format": text_format,
            "add_duplicates": add_duplicates,
        }
        if isinstance(data, str | PathLike):
            of_file = {"format": format, "encoding": encoding, "keep_labels": keep_labels}
            return self._import_file(Path(fspath(data)), {**of_file, **fields})
        if format or encoding:
            raise ValueError("format and encoding are a file's; rows are sent as they are")
        fields["keep_labels"] = keep_labels
        address = f"{self._path}items/"
        with spooled(data) as file:
            answer = self._transport.upload(address, file, media_type=NDJSON, params=_given(fields))
        return self._job(answer)

    def _import_file(self, path: Path, fields: dict[str, Any]) -> Job:
        stored = self._send_file(path)
        return self._job(self._post("imports/", {"file": stored, **_given(fields)}))

    def _send_file(self, path: Path) -> int:
        address = f"{self._path}files/"
        with path.open("rb") as file:
            stored = self._transport.upload(address, file, media_type=BYTES, params={"name": path.name})
        return int(stored["id"])

    def files(self) -> Iterator[StoredFile]:
        """The files that were sent, newest first: `id`, `name`, `size`, `sha256`, `created_at`."""
        return pages(self._transport, f"{self._path}files/")

    def delete_file(self, file_id: int) -> None:
        """Remove one of them. What was imported from it stays."""
        self._transport.request("DELETE", f"{self._path}files/{file_id}/")

    def items(self, *, stream: bool = False, **filters: Any) -> Iterator[Item]:
        """The items. `filters` as in the API; `stream` reads all in one answer, which is faster."""
        return self._entries("items", stream, filters)

    def item(self, item_id: int, **parts: Any) -> Item:
        """One item by its `id`; with `columns=True` also its `data`."""
        return cast(Item, self._get(f"items/{item_id}/", parts))

    def image(self, item: Mapping[str, Any]) -> bytes:
        """The image of an item that `items` gave, as it was imported. Its SHA-256 is checked."""
        return image_of(self._transport, self._path, item)

    def image_link(self, item: Mapping[str, Any], *, seconds: int = 600) -> str:
        """An address of the image that needs no token, for a page that shows it; it holds for so long."""
        return str(self._post(f"images/{name_of(item)}/link/", {"seconds": seconds})["url"])

    def save_image(self, item: Mapping[str, Any], path: str | PathLike[str]) -> Path:
        return save(self.image(item), path)

    def labels(self, *, stream: bool = False, **filters: Any) -> Iterator[Label]:
        """What people labelled, as far as it may be seen; filters: `annotator`, `external_id`, `since`."""
        return self._entries("labels", stream, filters)

    def label(self, label_id: int) -> Label:
        """One label by its `id`, as far as it may be seen; of one that was corrected the newest version."""
        return cast(Label, self._get(f"labels/{label_id}/"))

    def predictions(self, *, stream: bool = False, **filters: Any) -> Iterator[Prediction]:
        """Answers of models, as far as they may be seen; filters: `source`, `external_id`."""
        return self._entries("predictions", stream, filters)

    def _entries(self, what: str, stream: bool, filters: Mapping[str, Any]) -> Iterator[Any]:
        if stream:
            return lines(self._transport, f"{self._path}{what}.ndjson", filters)
        return pages(self._transport, f"{self._path}{what}/", filters)

    def plan(self, **plan: Any) -> Outlook:
        """What a plan (`epsilon`, `alpha`, `m`, `p`, ...) would mean. Nothing is stored or spent."""
        return cast(Outlook, self._post("plan/", plan))

    def start_run(self, **plan: Any) -> Run:
        """Freeze the items, draw the calibration set, let the models begin. Takes what `plan` takes, and what
        the start alone does: `accept_missing=False` refuses a source without answers that are sent in, and
        with `unless_under_way`, `unless_undelivered` and `if_new_items` ConflictError, its code `no_run_due`,
        says that none is due.
        """
        return Run(self._transport, self._path, self._post("runs/", plan))

    def people_outlook(self, **chosen: Any) -> PeopleOutlook:
        """What `start_people_run` would mean. Nothing is stored."""
        return cast(PeopleOutlook, self._post("people-runs/outlook/", chosen))

    def start_people_run(self, **chosen: Any) -> Run:
        """Have people label items without any model. `chosen`: `filters`, `sample`, `overlap` and
        `overlap_share`, as the API takes them. Nothing is certified."""
        return Run(self._transport, self._path, self._post("people-runs/", chosen))

    def runs(self) -> Iterator[Run]:
        """The newest first."""
        return (
            Run(self._transport, self._path, entry) for entry in pages(self._transport, f"{self._path}runs/")
        )

    def run(self, number: int) -> Run:
        return Run(self._transport, self._path, self._get(f"runs/{number}/"))

    def newest_run(self) -> Run | None:
        """The newest that was not cancelled."""
        newest = next((run for run in self.runs() if run.state != "cancelled"), None)
        return None if newest is None else newest.refresh()

    def label_config(self) -> str:
        """The labelling configuration for a project in Label Studio."""
        return self._transport.content(f"{self._path}config.xml").decode()

    def erase_items(self, external_ids: Sequence[str]) -> ErasedItems:
        """Erase the content of these items for good: how many `items` now, how many `already` before, and the
        `deliveries` and `sent` files that may still have it.
        """
        return cast(ErasedItems, self._post("items/erase/", {"external_ids": list(external_ids)}))

    def queue(self) -> Queue:
        """What waits to be labelled by the owner of the token."""
        lease = int(self.data.get("lease_seconds") or DEFAULT_LEASE)
        return Queue(self._transport, f"{self._path}queue/", lease_seconds=lease)

    def jobs(self, **filters: Any) -> Iterator[Job]:
        """Background work, the newest first; filters: `kind`, `state`."""
        return (self._job(entry) for entry in pages(self._transport, f"{self._path}jobs/", filters))

    def deliveries(self) -> Iterator[Delivery]:
        """The newest first. Addresses and `since` have their `id`; `number` counts those of one run."""
        for entry in pages(self._transport, f"{self._path}deliveries/"):
            address = f"{self._path}deliveries/{entry['id']}/"
            yield Delivery(self._transport, address, entry)

    def delivery(self, delivery_id: int) -> Delivery:
        """One by its `id`."""
        address = f"{self._path}deliveries/{delivery_id}/"
        return Delivery(self._transport, address, self._transport.get(address))

    def invite(self, username: str, role: str) -> SentInvitation:
        """Ask somebody who has an account to take part, as `annotator`, `reviewer` or `viewer`. They accept
        it on their list of projects, or by `client.invitations()`.
        """
        return cast(SentInvitation, self._post("members/", {"username": username, "role": role}))

    def _job(self, data: Mapping[str, Any]) -> Job:
        return Job(self._transport, f"{self._path}jobs/{data['id']}/", data)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was left out."""
    return {name: value for name, value in fields.items() if value not in ("", [], (), False)}
