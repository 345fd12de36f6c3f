"""The models of a project."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from hypac_client.jobs import Job
from hypac_client.models import Health, Mends, SourceData, Usability
from hypac_client.records import NDJSON, Records, lines_file
from hypac_client.resource import Resource, pages
from hypac_client.transport import Transport

UPLOADED = "uploaded"
LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
CHANGED = ("name", "backend", "params", "cost_per_label", "cost_function", "prices", "price")
"""What a change would set back where it does not name it."""


class Source(Resource):
    """A model, at its place in the cascade."""

    title_field = "name"
    data: SourceData

    @property
    def id(self) -> int:
        return int(self.data["id"])

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def warnings(self) -> list[str]:
        """What was odd, though possible, when it was saved."""
        return list(self.data.get("warnings") or [])

    @property
    def usability(self) -> Usability:
        """How many of its answers a run could use and why not the others, as it was read; `sentence` says it
        in words. Empty where the server does not know."""
        return cast(Usability, dict(self.data.get("usability") or {}))

    def health(self) -> Health:
        """What is known of its answers before a run rests on them: `usability`, `reasons` with examples, and
        where that may be told now (`shown`) `confidence`, `classes`, `agreement` and `spellings`."""
        return cast(Health, self._get("health/"))

    def mend(
        self, *, blanks: bool = False, capitals: bool = False, labels: Mapping[str, str] | None = None
    ) -> Mends:
        """Read its answers so from now on: repeated blanks count as one, capitals do not matter, and `labels`
        is what an answer says instead of a label -> that label. What is not given is set back."""
        body = {"blanks": blanks, "capitals": capitals, "labels": dict(labels or {})}
        return cast(Mends, self._transport.request("PUT", f"{self._path}mends/", json=body))

    def upload_predictions(
        self,
        data: Records | str | PathLike[str] | IO[Any],
        *,
        format: str = "",
        revision: str = "",
        encoding: str = "",
        id_column: str = "",
    ) -> Job:
        """Answers of your own model, for a source whose backend is `uploaded`.

        A DataFrame or dictionaries, one row an item: `external_id`, `label`, one of `confidence`,
        `uncertainty` and `probabilities`, and where you have them `tokens_in`, `tokens_out`, `cost`. Or the
        path of a file, or an open one, that has such rows: JSON Lines, CSV or TSV, gzipped or not, an Excel
        workbook, a JSON list or Parquet, where other usual names of columns are known, too. However many
        there are, they are never in memory as a whole. Sending the same rows again changes nothing.

        `format`: `predictions`, `table`, or `openai_batch` for what OpenAI's Batch API gave back; else the
        file tells. `revision`: that of the model where it is another than the source names. `encoding`: that
        of a text that is neither UTF-8 nor marked as UTF-16; the error says which ones are possible.
        `id_column`: the column of a table, or the field of lines, that names the items.
        """
        project = self._path.partition("sources/")[0]
        name = Path(data).name if isinstance(data, str | PathLike) else ""
        if name.endswith(LINES):
            name = ""  # a server before 0.3 does not know the parameter, and reads no other file
        asked = {"format": format, "revision": revision, "encoding": encoding, "name": name}
        asked["id_column"] = id_column
        with lines_file(data) as file:
            answer = self._transport.upload(
                f"{self._path}predictions/",
                file,
                media_type=NDJSON,
                params={what: value or None for what, value in asked.items()},
            )
        return Job(self._transport, f"{project}jobs/{answer['id']}/", answer)

    def update(self, **fields: Any) -> "Source":
        """Change what is given of its fields, which are those of `Sources.add`; the others stay."""
        self.refresh()  # a list of sources has not all of them
        return self._change("PUT", {**{name: self[name] for name in CHANGED}, **fields})

    def remove(self) -> None:
        self._transport.request("DELETE", self._path)


class Sources:
    """`project.sources`."""

    def __init__(self, transport: Transport, project: str) -> None:
        self._transport = transport
        self._path = f"{project}sources/"

    def add(
        self,
        name: str,
        *,
        backend: str = UPLOADED,
        params: Mapping[str, Any] | None = None,
        cost_per_label: float | str | Decimal = 0,
        **fields: Any,
    ) -> Source:
        """Add a model; it comes last. `fields` are the others of the API: `position`, `prompt`, `api_key`,
        `price`, `cost_function`, `prices`.
        """
        body = {
            "name": name,
            "backend": backend,
            "params": dict(params or {}),
            "cost_per_label": str(cost_per_label),
            **fields,
        }
        return self._source(self._transport.request("POST", self._path, json=body))

    def get(self, source_id: int) -> Source:
        return self._source(self._transport.get(f"{self._path}{source_id}/"))

    def __iter__(self) -> Iterator[Source]:
        """In the order of the cascade."""
        for entry in pages(self._transport, self._path):
            yield self._source(entry)

    def _source(self, data: Mapping[str, Any]) -> Source:
        return Source(self._transport, f"{self._path}{data['id']}/", data)
