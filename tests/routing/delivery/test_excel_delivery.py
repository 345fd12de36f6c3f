"""A workbook that is delivered: what it holds, and what it refuses."""

import io
from typing import Any

import openpyxl
import pytest

from annotation.errors import InputError
from routing.delivery.formats import DeliveryInfo, Row, excel
from tests.routing.delivery.written import files_written

COLUMNS = ["text", "n"]


def workbook(rows: list[tuple[dict[str, Any], Row]], *cuts: int, columns: list[str] = COLUMNS) -> bytes:
    return files_written("xlsx", DeliveryInfo(columns), rows, *cuts)[0]["labels.xlsx"]


def cells_of(content: bytes) -> list[list[Any]]:
    (sheet,) = openpyxl.load_workbook(io.BytesIO(content)).worksheets
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def row(text: str, n: Any = None, **fields: Any) -> tuple[dict[str, Any], Row]:
    return {"text": text, "n": n}, Row("a", **fields)


def test_no_cell_is_a_formula_or_a_link_and_numbers_are_exact() -> None:
    texts = ["=1+1", "https://example.org", "<r><t>x</t></r>", "007", "a\nb", "mailto:x@example.org"]
    rows = [row(text, 0.1 + 0.2, uncertainty=1 / 3, asked=True, run=2) for text in texts]
    content = workbook(rows)
    (sheet,) = openpyxl.load_workbook(io.BytesIO(content)).worksheets
    assert [cell.value for cell in sheet["A"][1:]] == texts
    assert {cell.data_type for cell in sheet["A"]} == {"s"}
    assert not any(cell.hyperlink for cell in sheet["A"])
    header, first, *_others = cells_of(content)
    assert header[:3] == ["text", "n", "external_id"]
    found = dict(zip(header, first, strict=True))
    assert (found["n"], found["uncertainty"], found["asked"], found["run"]) == (0.1 + 0.2, 1 / 3, True, 2)
    assert found["label"] is None
    assert workbook(rows, 1, 4) == content


@pytest.mark.parametrize(
    ("value", "written"), [(2**53 + 1, str(2**53 + 1)), ([1, "x"], '[1,"x"]'), (True, True)]
)
def test_what_a_cell_cannot_hold_as_it_is_stands_there_as_text(value: Any, written: Any) -> None:
    assert cells_of(workbook([row("x", value)]))[1][1] == written


def test_more_than_a_sheet_holds_is_refused(monkeypatch) -> None:
    assert cells_of(workbook([row("x" * 32_767)]))[1][0] == "x" * 32_767
    with pytest.raises(InputError, match=r"item a has 32,768 characters in the column “text”.*32,767"):
        workbook([row("🦤" * 16_384)])
    with pytest.raises(InputError, match="has 16,384 columns, and these are"):
        workbook([row("x")], columns=[f"c{n}" for n in range(16_384)])
    monkeypatch.setattr(excel, "MOST_ROWS", 2)
    assert len(cells_of(workbook([row("x")] * 2))) == 3
    with pytest.raises(InputError, match="2 rows beside its header, and this delivery has more"):
        workbook([row("x")] * 3)
