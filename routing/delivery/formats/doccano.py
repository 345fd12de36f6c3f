"""JSON Lines for doccano: text classification where labels are choices, sequence to sequence otherwise."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.jsonl import dumps
from routing.labels.page import ADDED, DeliveryInfo, Page, added_names, free_names

# What doccano reads, or writes itself when it gives the examples back.
RESERVED = ("text", "label", "id", "Comments")
# The name of a label has at most so many characters there.
LONGEST_LABEL = 100


class DoccanoWriter(RowWriter):
    file_name: ClassVar[str] = "doccano.jsonl"
    summary: ClassVar[Any] = _("For doccano: text, labels, and everything else as metadata.")
    media_type: ClassVar[str] = "application/x-ndjson"
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit(
            "provenance",
            _(
                "doccano has no place for who or what gave a label, for scores, or for the certificate: they "
                "stand among the metadata, as do the imported columns."
            ),
        ),
        Limit(
            "names",
            _(
                "Imported columns with a name that doccano uses itself are called original_text, "
                "original_label, original_id and original_Comments."
            ),
        ),
        Limit(
            "long_labels",
            _("doccano refuses labels of more than 100 characters where they are choices."),
            counted=True,
        ),
        Limit(
            "none_of_them",
            _(
                "That none of the choices fits looks like no label there; among the metadata it is an empty "
                "list, and no label is null."
            ),
            counted=True,
        ),
        Limit(
            "images",
            _("Of an image only the name of its file is in it; doccano takes images as files."),
            counted=True,
        ),
    )
    reads_texts: ClassVar[bool] = True

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._out = files.open(self.file_name, self.media_type)
        self._choices = info.kind.has_choices
        self._columns = free_names(info.columns, RESERVED)
        self._names = added_names([*self._columns.values(), *RESERVED], info.added)
        names = list(info.choices.values())
        # Two choices of one name would become one label.
        self._twice = {name for name in names if names.count(name) > 1}

    def write(self, page: Page) -> None:
        added = [page.columns[name] for name in ADDED]
        lines = [
            dumps(self._example(values, text, dict(zip(ADDED, facts, strict=True))))
            for values, text, *facts in zip(page.values, page.texts, *added, strict=True)
        ]
        if lines:
            self._out.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Every page is written at once."""

    def _example(self, values: Any, text: str, facts: dict[str, Any]) -> dict[str, Any]:
        labels = list(dict.fromkeys(self._labels(facts["label"], facts["label_name"])))
        if self._choices:
            self.counts["long_labels"] += sum(len(label) > LONGEST_LABEL for label in labels)
        self.counts["none_of_them"] += facts["label"] == []
        self.counts["images"] += not text
        example: dict[str, Any] = {"text": text} if text else {"filename": facts["external_id"]}
        example["label"] = labels
        for column, name in self._columns.items():
            # The text is there once where the column is called so.
            if column in values and not (column == "text" and values[column] == text):
                example[name] = values[column]
        return example | {self._names[name]: facts[name] for name in self._names}

    def _labels(self, label: Any, name: Any) -> list[str]:
        if label is None:
            return []
        if isinstance(label, list):
            if len(label) != len(name):  # one was split, and people have chosen others in its place
                label = name
            return [self._shown(*pair) for pair in zip(label, name, strict=True)]
        return [self._shown(label, name)]

    def _shown(self, label: str, name: str | None) -> str:
        return label if name is None or name in self._twice else name
