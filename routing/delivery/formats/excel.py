"""An Excel workbook of one sheet, written row by row: a row that follows has the last one on the disk.

Cells are texts, numbers and truth values, and none is a formula or a link, whatever it says.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, ClassVar, cast

from django.utils.translation import gettext, gettext_lazy as _
from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from annotation.common.own_folders import OwnFolder
from annotation.errors import InputError
from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.csv import cell_text
from routing.labels.page import DeliveryInfo, Page, added_names

SHEET = "labels"
MOST_ROWS = 1_048_575
"""Beside the header."""
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
EXACT = 2**53
# The same labels give the same bytes.
NO_TIME = datetime(2000, 1, 1)


class _Sheet(Worksheet):
    """As the library's, but exact: it writes 16 digits of a number, where a double may need 17, and takes a
    text that begins and ends as its own marks do for one of several fonts, and writes it as it is.
    """

    def _xml_number_element(self, number: float, attributes: Sequence[tuple[str, str]] = ()) -> None:
        attr = "".join(f' {key}="{value}"' for key, value in attributes)
        self.fh.write(f"<c{attr}><v>{number!r}</v></c>")

    def _xml_rich_inline_string(self, string: str, attributes: Sequence[tuple[str, str]] = ()) -> None:
        self._xml_inline_string(string, False, attributes)


class ExcelWriter(RowWriter):
    file_name: ClassVar[str] = "labels.xlsx"
    summary: ClassVar[Any] = _("A workbook for Excel and other spreadsheets: no cell is a formula.")
    media_type: ClassVar[str] = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit(
            "size",
            _(
                "A sheet has at most 1,048,575 rows beside its header and 16,384 columns, and a cell 32,767 "
                "characters: a delivery with more is refused."
            ),
        ),
        Limit("lists", _("Lists and objects are written as JSON; whole numbers beyond 2^53 are text.")),
        Limit("empty", _("A cell that is empty, one that is null and one that was not there look the same.")),
    )

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._columns, self._added = info.columns, info.added
        names = added_names(info.columns, info.added)
        header = [*info.columns, *(names[name] for name in info.added)]
        if len(header) > MOST_COLUMNS:
            raise InputError(
                gettext(
                    "An Excel sheet has %(most)s columns, and these are %(count)s. Choose another format."
                )
                % {"most": f"{MOST_COLUMNS:,}", "count": f"{len(header):,}"},
                where="formats",
            )
        self._header = header
        self._out: IO[bytes] = files.open(self.file_name, self.media_type)
        # The library keeps its rows in a file here; it goes with the writer, also where one breaks off.
        self._folder = OwnFolder("excel")
        self._book = Workbook(
            self._out, {"constant_memory": True, "tmpdir": self._folder.name, "in_memory": False}
        )
        self._book.use_zip64()
        self._book.set_properties({"created": NO_TIME})
        self._sheet = self._book.add_worksheet(SHEET, worksheet_class=_Sheet)
        self._sheet.freeze_panes(1, 0)
        self._rows = 0
        self._write_row(header, header[0])
        self._rows = 0

    def write(self, page: Page) -> None:
        ids = page.columns["external_id"]
        added = [page.columns[name] for name in self._added]
        for values, name, *ours in zip(page.values, ids, *added, strict=True):
            self._rows += 1
            if self._rows > MOST_ROWS:
                raise InputError(
                    gettext(
                        "An Excel sheet has %(most)s rows beside its header, and this delivery has more. "
                        "Choose another format, or deliver a part of the items."
                    )
                    % {"most": f"{MOST_ROWS:,}"},
                    where="formats",
                )
            self._write_row(self._row(values, ours), name)

    def close(self) -> None:
        self._book.close()
        self._folder.cleanup()

    def _row(self, values: Mapping[str, Any], ours: Iterable[Any]) -> list[Any]:
        return [*(values.get(column) for column in self._columns), *ours]

    def _write_row(self, cells: Iterable[Any], item: str) -> None:
        sheet = self._sheet
        for place, value in enumerate(cells):
            if value is None or value == "":
                continue
            if isinstance(value, bool):
                sheet.write_boolean(self._rows, place, value)
            elif isinstance(value, float) or (isinstance(value, int) and abs(value) <= EXACT):
                sheet.write_number(self._rows, place, cast(float, value))
            else:
                self._write_text(place, cell_text(value), item)

    def _write_text(self, place: int, text: str, item: str) -> None:
        # A character beyond the first 65,536 counts twice there.
        length = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        if length > MOST_CHARACTERS:
            raise InputError(
                gettext(
                    "The item %(item)s has %(count)s characters in the column “%(column)s”, and a cell of "
                    "Excel holds %(most)s. Choose another format."
                )
                % {
                    "item": item,
                    "column": self._header[place],
                    "count": f"{length:,}",
                    "most": f"{MOST_CHARACTERS:,}",
                },
                where="formats",
            )
        self._sheet.write_string(self._rows, place, text)
