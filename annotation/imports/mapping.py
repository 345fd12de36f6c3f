"""Which column of a file is what."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mapping:
    """Which column is an item's id, and which ones people read: one as a text, or several as fields.

    Without an id column the item is named by the file and its line, an image by its path in the archive.
    """

    id_column: str = ""
    text_column: str = ""
    field_columns: tuple[str, ...] = ()

    @classmethod
    def showing(cls, columns: Sequence[str], *, id_column: str = "") -> "Mapping":
        """One column is a text, several are fields in this order."""
        if len(columns) > 1:
            return cls(id_column=id_column, field_columns=tuple(columns))
        return cls(id_column=id_column, text_column=columns[0] if columns else "")

    @classmethod
    def of(cls, params: dict[str, object]) -> "Mapping":
        """That of an import job. Jobs of earlier versions know no fields."""
        fields = params.get("field_columns") or ()
        return cls(str(params["id_column"]), str(params["text_column"]), tuple(fields))  # type: ignore[arg-type]

    @property
    def shown(self) -> tuple[str, ...]:
        return self.field_columns or ((self.text_column,) if self.text_column else ())
