"""Files of a delivery: checked, taken up where they broke off, and never outside the folder."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hypac_client import ChecksumError, Delivery, HypacError
from routing.labels.page import ADDED, OF_SOME_RUNS
from tests.client.scripted import Reply, Script, scripted

CONTENT = bytes(range(256)) * 40
PART = f"big.bin.{hashlib.sha256(CONTENT).hexdigest()[:16]}.part"


def delivery_of(files: dict[str, bytes], *replies: Reply, **more: Any) -> tuple[Delivery, Script]:
    client, script, _ = scripted(*replies)
    entries = [
        {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    ]
    data = {"id": 3, "files": entries, **more}
    return Delivery(client._transport, "projects/a/deliveries/3/", data), script


def breaks_off(content: bytes, at: int, status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    def pieces() -> Iterator[bytes]:
        yield content[:at]
        raise httpx.ReadError("connection lost")

    return lambda _: httpx.Response(status, content=pieces())


def rest(request: httpx.Request) -> httpx.Response:
    start = int(request.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    return httpx.Response(206, content=CONTENT[start:])


def test_a_download_that_breaks_off_goes_on(tmp_path: Path) -> None:
    delivery, script = delivery_of({"data/big.bin": CONTENT}, breaks_off(CONTENT, 1000), rest)
    (path,) = delivery.download(tmp_path)
    assert path == tmp_path / "data" / "big.bin"
    assert path.read_bytes() == CONTENT
    assert [request.headers.get("Range") for request in script.requests] == [None, "bytes=1000-"]
    assert script.requests[0].url.path == "/api/v1/projects/a/deliveries/3/files/data/big.bin"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["big.bin"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(CONTENT[:77])
    delivery, script = delivery_of({"big.bin": CONTENT}, rest)
    delivery.download(tmp_path)
    assert (tmp_path / "big.bin").read_bytes() == CONTENT
    assert script.requests[0].headers["Range"] == "bytes=77-"


def test_what_another_delivery_left_is_not_gone_on_with(tmp_path: Path) -> None:
    broken = breaks_off(CONTENT, 1000), *[httpx.ConnectError("lost")] * 40
    delivery, _ = delivery_of({"big.bin": CONTENT}, *broken)
    with pytest.raises(HypacError):
        delivery.download(tmp_path)
    other = CONTENT[::-1]
    delivery, script = delivery_of({"big.bin": other}, httpx.Response(200, content=other))
    delivery.download(tmp_path)
    assert (tmp_path / "big.bin").read_bytes() == other
    assert "Range" not in script.requests[0].headers
    delivery, script = delivery_of({"big.bin": CONTENT}, rest)
    delivery.download(tmp_path)
    assert (tmp_path / "big.bin").read_bytes() == CONTENT
    assert script.requests[0].headers["Range"] == "bytes=1000-"


def test_a_server_that_ignores_ranges_starts_anew(tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(b"other")
    delivery, _ = delivery_of({"big.bin": CONTENT}, httpx.Response(200, content=CONTENT))
    delivery.download(tmp_path)
    assert (tmp_path / "big.bin").read_bytes() == CONTENT


def test_what_is_there_is_not_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(CONTENT)
    delivery, script = delivery_of({"big.bin": CONTENT})
    delivery.download(tmp_path)
    assert script.requests == []


def test_a_part_that_is_too_long_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(CONTENT + b"more")
    delivery, script = delivery_of({"big.bin": CONTENT}, httpx.Response(200, content=CONTENT))
    delivery.download(tmp_path)
    assert "Range" not in script.requests[0].headers


def test_what_no_delivery_left_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:")
    delivery, script = delivery_of({"Makefile": CONTENT})
    with pytest.raises(HypacError, match="no delivery left it"):
        delivery.download(tmp_path)
    assert (tmp_path / "Makefile").read_text() == "all:"
    assert not script.requests


def test_no_link_is_followed_out_of_the_folder(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (folder / "data").symlink_to(outside)
    delivery, _ = delivery_of({"data/big.bin": CONTENT})
    with pytest.raises(HypacError, match="by a link"):
        delivery.download(folder)
    assert list(outside.iterdir()) == []


def test_wrong_bytes_are_not_kept(tmp_path: Path) -> None:
    delivery, _ = delivery_of({"big.bin": CONTENT}, httpx.Response(200, content=CONTENT[::-1]))
    with pytest.raises(ChecksumError, match=r"big\.bin"):
        delivery.download(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_more_is_written_than_there_is_to_come(tmp_path: Path) -> None:
    delivery, script = delivery_of({"big.bin": CONTENT}, httpx.Response(200, content=CONTENT + b"more"))
    with pytest.raises(ChecksumError, match=r"big\.bin is longer than its 10,240 bytes"):
        delivery.download(tmp_path)
    assert (list(tmp_path.iterdir()), len(script.requests)) == ([], 1)


@pytest.mark.parametrize(
    "name",
    [
        *("../secret", "/etc/passwd", "a/../../b", "..", "C:\\x", "a\\b", ""),
        *(".git/config", "data/.bashrc", "x\n", "x\x1b[2J"),
    ],
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    delivery, script = delivery_of({name: CONTENT})
    with pytest.raises(HypacError, match="no name of a file"):
        delivery.download(tmp_path / "here")
    assert script.requests == []


ROWS = [
    {"external_id": "01", "n": 1, "text": "a\u2028b", "label": "yes"},
    {"external_id": "2", "n": None, "text": "שלום", "label": None},
]


def test_a_delivery_becomes_a_table() -> None:
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
    files = {"labels.csv": b"", "labels.jsonl": content}
    delivery, _ = delivery_of(files, httpx.Response(200, content=content))
    table = delivery.to_dataframe()
    assert table["external_id"].tolist() == ["01", "2"]
    assert table["text"].tolist() == ["a\u2028b", "שלום"]
    assert table["label"].isna().tolist() == [False, True]


FORMS = ("labels.jsonl", "labels.json", "labels.parquet", "labels.csv")
# Imported columns have names of ours, so that ours get a prefix.
GIVEN = [
    {"id": "01", "p_i": "x", "run": "-", "external_id": "01", **facts}
    for facts in (
        {"label": "yes", "uncertainty": 0.25, "hypac_p_i": "0.9", "asked": True, "hypac_run": 1},
        {"label": None, "uncertainty": None, "hypac_p_i": None, "asked": False, "hypac_run": None},
    )
]


def file_of(name: str, rows: list[dict[str, Any]]) -> bytes:
    """As a server writes it."""
    if name.endswith(".jsonl"):
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if name.endswith(".json"):
        return json.dumps(rows).encode()
    if name.endswith(".csv"):
        cells = [list(rows[0]), *([_cell(cell) for cell in row.values()] for row in rows)]
        return "".join(",".join(line) + "\r\n" for line in cells).encode()
    exact = [
        row | {"hypac_p_i": None if row["hypac_p_i"] is None else Decimal(row["hypac_p_i"])} for row in rows
    ]
    types = {"uncertainty": pa.float64(), "hypac_p_i": pa.decimal128(9, 8), "asked": pa.bool_()}
    columns = [
        (name, types.get(name, pa.int32() if name == "hypac_run" else pa.string())) for name in rows[0]
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(exact, pa.schema(columns)), buffer)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


@pytest.mark.parametrize("name", FORMS)
def test_numbers_of_a_delivery_are_numbers_in_each_of_its_files(name: str) -> None:
    content = file_of(name, GIVEN)
    delivery, _ = delivery_of({name: content}, httpx.Response(200, content=content))
    table = delivery.to_dataframe()
    assert table["hypac_p_i"].dtype == table["uncertainty"].dtype == "float64"
    assert (table["hypac_p_i"][0], table["uncertainty"][0]) == (0.9, 0.25)
    assert table[["label", "uncertainty", "hypac_p_i", "hypac_run"]].loc[1].isna().all()
    assert table["hypac_run"].dtype == "Int64"
    assert table["hypac_run"][0] == 1
    assert table["asked"].tolist() == [True, False]
    assert table[["id", "p_i", "run"]].loc[0].tolist() == ["01", "x", "-"]


@pytest.mark.parametrize("name", FORMS)
def test_a_column_of_numbers_without_a_single_one_is_one_of_numbers(name: str) -> None:
    content = file_of(name, GIVEN[1:])
    delivery, _ = delivery_of({name: content}, httpx.Response(200, content=content))
    table = delivery.to_dataframe()
    assert [str(table[column].dtype) for column in ("hypac_p_i", "uncertainty")] == ["float64"] * 2


# No float holds these whole numbers. The first item lacks `some`.
EXACT = [
    {"id": "1", "n": 2**53 + 1, "big": 2**70, "x": 1, "yes": True, "tags": [2**53 + 1, None], "odd": 1},
    {"id": "2", "n": None, "some": 2**63 - 1, "big": None, "x": 0.5, "yes": None, "tags": None, "odd": "a"},
    {"id": "3", "n": -(2**63), "some": None, "big": 1, "x": None, "yes": False, "tags": [], "odd": None},
]


@pytest.mark.parametrize("name", FORMS[:3])
def test_imported_values_of_a_table_are_those_of_the_file(name: str) -> None:
    rows = [row | {"external_id": row["id"], "label": "yes", "asked": True} for row in EXACT]
    if name.endswith(".parquet"):
        # A column of Parquet has one type.
        rows = [{key: row.get(key) for key in rows[1] if key not in ("big", "odd")} for row in rows]
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), buffer)
        content = buffer.getvalue()
    else:
        content = file_of(name, rows)
    delivery, _ = delivery_of({name: content}, httpx.Response(200, content=content))
    table = delivery.to_dataframe()
    assert list(table.columns) == list(rows[1])
    for place, row in enumerate(rows):
        for column in table.columns:
            cell, value = table[column][place], row.get(column)
            missing = value is None and pd.isna(cell)
            assert missing or cell == value, (column, cell)
    assert [str(table[column].dtype) for column in ("n", "some", "x", "yes")] == [
        *("Int64", "Int64", "float64", "boolean"),
    ]


@pytest.mark.parametrize(("name", "content"), [("labels.json", b"[]"), ("labels.jsonl", b"")])
def test_a_delivery_without_rows_is_an_empty_table_with_the_columns_of_others(name, content) -> None:
    delivery, _ = delivery_of({name: content}, httpx.Response(200, content=content))
    table = delivery.to_dataframe()
    assert len(table) == 0
    assert list(table.columns) == [name for name in ADDED if name not in OF_SOME_RUNS]
    assert [str(table[name].dtype) for name in ("uncertainty", "run", "asked")] == [
        "float64",
        "Int64",
        "bool",
    ]


def test_imported_columns_of_csv_stay_text_and_other_files_are_no_table() -> None:
    frame = pd.DataFrame({"external_id": ["01"], "n": ["1.0"], "note": [""], "label": ["yes"]})
    content = frame.to_csv(index=False).encode()
    delivery, _ = delivery_of({"labels.csv": content}, httpx.Response(200, content=content))
    assert delivery.to_dataframe().to_dict("records") == frame.to_dict("records")
    delivery, _ = delivery_of({"other.bin": b""})
    with pytest.raises(HypacError, match=r"none of .* but other\.bin"):
        delivery.to_dataframe()


def test_files_of_another_project_stay(tmp_path: Path) -> None:
    ours, _ = delivery_of({"labels.csv": b"ours"}, httpx.Response(200, content=b"ours"))
    ours.download(tmp_path)
    theirs, script = delivery_of({"labels.csv": b"theirs"}, httpx.Response(200, content=b"theirs"))
    theirs._path = "projects/b/deliveries/4/"
    with pytest.raises(HypacError, match="holds a delivery of the project 'a'"):
        theirs.download(tmp_path)
    assert (tmp_path / "labels.csv").read_bytes() == b"ours"
    assert script.requests == []
