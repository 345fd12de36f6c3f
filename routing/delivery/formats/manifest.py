"""An augmented manifest, as Amazon SageMaker Ground Truth writes and reads it: one JSON object per item."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.jsonl import dumps
from routing.labels.columns import PERSON
from routing.labels.page import ADDED, DeliveryInfo, Page, free_names

LABEL = "label"
METADATA = f"{LABEL}-metadata"
RESERVED = ("source", "source-ref", LABEL, METADATA, "hypac")
# Ground Truth reads no longer lines.
LONGEST_LINE = 100_000


class ManifestWriter(RowWriter):
    file_name: ClassVar[str] = "labels.manifest"
    summary: ClassVar[Any] = _(
        "For Amazon SageMaker: an augmented manifest as Ground Truth writes it, one object on each line."
    )
    media_type: ClassVar[str] = "application/x-ndjson"
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit(
            "creation_date",
            _(
                "`label-metadata` has no `creation-date`, which Ground Truth writes: nothing in a delivery "
                "says when it was made, so that the same labels give the same bytes."
            ),
        ),
        Limit(
            "confidence",
            _(
                "`confidence` is there for labels of the first model only, as 1 minus its uncertainty: of "
                "the other models and of people nothing is known that would be one. What is known stands in "
                "`hypac`."
            ),
        ),
        Limit(
            "images",
            _(
                "The `source-ref` of an image is its `external_id`: put the address in front under which "
                "your images lie."
            ),
            counted=True,
        ),
        Limit(
            "long_lines",
            _("Ground Truth refuses a line of more than 100,000 characters."),
            counted=True,
        ),
        Limit(
            "names",
            _(
                "Imported columns called source, source-ref, label, label-metadata or hypac have `original_` "
                "in front."
            ),
        ),
    )
    reads_texts: ClassVar[bool] = True

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._out = files.open(self.file_name, self.media_type)
        self._info = info
        self._columns = free_names(info.columns, RESERVED)
        self._places = {key: place for place, key in enumerate(info.choices)}
        self._first = info.sources[0] if info.sources else None

    def write(self, page: Page) -> None:
        added = [page.columns[name] for name in ADDED]
        lines = [
            dumps(self._entry(values, text, dict(zip(ADDED, facts, strict=True))))
            for values, text, *facts in zip(page.values, page.texts, *added, strict=True)
        ]
        self.counts["long_lines"] += sum(len(line) > LONGEST_LINE for line in lines)
        if lines:
            self._out.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Every page is written at once."""

    def _entry(self, values: Any, text: str, facts: dict[str, Any]) -> dict[str, Any]:
        self.counts["images"] += not text
        entry: dict[str, Any] = {"source": text} if text else {"source-ref": facts["external_id"]}
        entry |= {name: values[column] for column, name in self._columns.items() if column in values}
        if facts["label"] is not None:
            entry[LABEL], entry[METADATA] = self._label(facts, "text" if text else "image")
        return entry | {"hypac": {name: value for name, value in facts.items() if value is not None}}

    def _label(self, facts: dict[str, Any], content: str) -> tuple[Any, dict[str, Any]]:
        name, kind = facts["label_name"], self._info.kind
        label = self._info.label_now(facts["label"], name)
        if isinstance(label, list):
            name = [self._info.choices.get(key) for key in label]
        task = "classification-multilabel" if kind.several else "classification"
        metadata: dict[str, Any] = {
            "type": f"groundtruth/{content}-{task}" if kind.has_choices else "groundtruth/custom",
            "job-name": self._info.name,
            "human-annotated": "yes" if facts["source"] == PERSON else "no",
        }
        sure = facts["source"] == self._first and facts["uncertainty"] is not None
        confidence = 1 - facts["uncertainty"] if sure else None
        if not kind.has_choices:
            return label, metadata | ({"confidence": confidence} if sure else {})
        if isinstance(label, list):
            places = [self._places.get(key, key) for key in label]
            metadata["class-map"] = {
                str(place): shown or key for place, key, shown in zip(places, label, name, strict=True)
            }
            if sure:
                metadata["confidence-map"] = {str(place): confidence for place in places}
            return places, metadata
        metadata["class-name"] = name or label
        return self._places.get(label, label), metadata | ({"confidence": confidence} if sure else {})
