"""Each format of a delivery: the same rows, exact where it says so, in whatever pages they come."""

import csv
import io
import json
import random
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.common.ranges import of_items
from annotation.common.value_reader import as_text
from annotation.errors import InputError
from routing.delivery.deliver import deliver
from routing.delivery.formats import FORMATS
from routing.labels.page import ADDED, DeliveryInfo, Row
from testbed.worlds import SETS, World, make_world
from tests.routing.delivery.test_deliveries import delivered, files_of
from tests.routing.delivery.written import files_written, kinds_of

pytestmark = pytest.mark.costly

COLUMNS = ["text", "a,b", "label"]
NASTY = [
    "",
    "plain",
    'a "quoted", cell',
    "line\nbreak\r\nand\ttab",
    "=1+1",
    "+1",
    "-5",
    "-0.25",
    "@x",
    "\tx",
    "\rx",
    "é\u2028\u2029\x7f",
    "\x01\x1f\\",
    "🦤",
    "null",
    "[]",
]


def rows_at_random(count: int, *, several: bool = False) -> list[tuple[dict[str, str], Row]]:
    random_ = random.Random(5)
    rows = []
    for index in range(count):
        original = {name: random_.choice(NASTY) for name in COLUMNS if random_.random() < 0.8}
        label = random_.choice([None, *NASTY])
        if several and label is not None:
            label = sorted(set(random_.choices(NASTY, k=3)))
        rows.append(
            (
                original,
                Row(
                    external_id=f"{random_.choice(NASTY)}:{index}",
                    label=label,
                    label_name=label if random_.random() < 0.5 else None,
                    source=random_.choice([None, "person", "=Model"]),
                    annotator=random_.choice([None, "ann, bob"]),
                    uncertainty=random_.choice([None, 0.0, 1.0, 1e-07, 0.1 + 0.2, random_.random()]),
                    p_i=random_.choice([None, "0.9", "1", "0.00000001"]),
                    asked=random_.random() < 0.5,
                    run=random_.choice([None, 1]),
                    certificate_id=random_.choice([None, "f" * 64]),
                    reason=random_.choice([None, "it waits for a person"]),
                ),
            )
        )
    return rows


def written(name: str, rows: list[tuple[dict[str, str], Row]], *cuts: int, several: bool = False) -> bytes:
    info = DeliveryInfo(COLUMNS, task_type="multiple_choice" if several else "single_choice")
    files, _ = files_written(name, info, rows, *cuts)
    (content,) = files.values()
    return content


def objects(rows: list[tuple[dict[str, str], Row]]) -> list[dict[str, object]]:
    """What a line of JSON holds, made one by one."""
    names = {name: f"hypac_{name}" if name in COLUMNS else name for name in ADDED}
    return [
        {name: original[name] for name in COLUMNS if name in original}
        | {names[name]: getattr(row, name) for name in ADDED}
        for original, row in rows
    ]


@pytest.mark.parametrize("several", [False, True])
def test_lines_are_those_of_the_json_module_to_the_byte(several):
    rows = rows_at_random(400, several=several)
    expected = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in objects(rows)
    )
    assert written("jsonl", rows, several=several) == expected.encode()
    listed = written("json", rows, several=several)
    assert json.loads(listed) == objects(rows)
    assert listed.decode() == "[\n" + expected.replace("}\n", "},\n").removesuffix(",\n") + "\n]\n"
    assert json.loads(written("json", [])) == []


@pytest.mark.parametrize(("name", "delimiter"), [("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize("several", [False, True])
def test_tables_are_read_back_cell_by_cell(name, delimiter, several):
    rows = rows_at_random(400, several=several)
    text = written(name, rows, several=several).decode()
    table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert table[0] == [*COLUMNS, *("hypac_label" if column == "label" else column for column in ADDED)]
    for cells, (original, row) in zip(table[1:], rows, strict=True):
        values = [original.get(column) for column in COLUMNS]
        values += [getattr(row, column) for column in ADDED]
        for cell, value in zip(cells, values, strict=True):
            exact = as_cell(value)
            formula = re.match(r"[\t\r\n]|\s*[-=+@]", exact) and exact not in ("-5", "-0.25")
            assert cell == (f"'{exact}" if formula else exact)


def as_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return as_text(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("several", [False, True])
def test_parquet_is_exact_and_typed(several):
    rows = rows_at_random(400, several=several)
    table = pq.read_table(io.BytesIO(written("parquet", rows, several=several)))
    label = pa.list_(pa.field("element", pa.string())) if several else pa.string()
    assert table.schema.field("hypac_label").type == label
    assert table.schema.field("uncertainty").type == pa.float64()
    assert table.schema.field("p_i").type == pa.decimal128(9, 8)
    assert table.schema.field("asked").type == pa.bool_()
    assert table.schema.field("a,b").type == pa.string()
    for found, expected in zip(table.to_pylist(), objects(rows), strict=True):
        wanted = dict.fromkeys(COLUMNS) | expected
        if wanted["p_i"] is not None:
            wanted["p_i"] = Decimal(str(wanted["p_i"]))
        assert found == wanted


@pytest.mark.parametrize("name", FORMATS)
def test_the_bytes_do_not_depend_on_the_pages(name):
    rows = [
        (original | {"n": index % 7, "mixed": [None, 1, "x", {"a": 1}][index % 4]}, row)
        for index, (original, row) in enumerate(rows_at_random(300))
    ]
    config = (
        '<View><Text name="text" value="$text"/><Choices name="label" toName="text">'
        '<Choice value="a"/><Choice value="b"/></Choices></View>'
    )
    info = DeliveryInfo([*COLUMNS, "n", "mixed"], kinds=kinds_of(rows), label_config=config)
    texts = [f"text {index}" for index in range(300)]
    whole, _ = files_written(name, info, rows, texts=texts)
    assert files_written(name, info, rows, 1, 2, 2, 150, texts=texts)[0] == whole
    assert files_written(name, info, rows, 299, texts=texts)[0] == whole


def test_large_parquet_files_are_written_in_groups(monkeypatch):
    monkeypatch.setattr("routing.delivery.formats.parquet.GROUP_ROWS", 100)
    rows = rows_at_random(350)
    content = io.BytesIO(written("parquet", rows, 60, 120, 200, 330))
    file = pq.ParquetFile(content)
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [120, 210, 20]
    assert file.read().num_rows == 350


@pytest.mark.django_db
class TestDeliveries:
    def test_all_formats_hold_the_same_rows_twice(self):
        world = make_world(120, answers=SETS)
        run = world.routed(m=40, loss="set_equal")
        found = [self._delivered(world, run) for _ in range(2)]
        assert found[0] == found[1]
        lines = [json.loads(line) for line in found[0]["labels.jsonl"].splitlines()]
        assert json.loads(found[0]["labels.json"]) == lines
        parquet = pq.read_table(io.BytesIO(found[0]["labels.parquet"])).to_pylist()
        labels = [line["label"] for line in lines]
        assert [row["label"] for row in parquet] == labels
        assert any(isinstance(label, list) for label in labels)
        for name, delimiter in (("labels.csv", ","), ("labels.tsv", "\t")):
            table = csv.DictReader(io.StringIO(found[0][name].decode(), newline=""), delimiter=delimiter)
            assert [row["label"] for row in table] == ["" if v is None else as_text(v) for v in labels]
        card = found[0]["README.md"].decode()
        assert "What `labels.csv` and `labels.tsv` cannot carry:" in card
        assert "without the first it is as it was. Here: none." in card
        assert "What `labels.jsonl` and `labels.json` cannot carry:\n\n- NaN and infinities are words" in card

    def _delivered(self, world: World, run) -> dict[str, bytes]:
        deliver(run=run, user=world.manager, formats=list(FORMATS))
        world.do("deliver_run")
        return files_of(run.deliveries.order_by("-number")[0])

    def test_small_pages_give_the_same_files(self, monkeypatch):
        world = make_world(90)
        run = world.routed(m=30)
        whole = delivered(world, run)
        monkeypatch.setattr("routing.labels.all_items.READ", 7)
        monkeypatch.setattr("routing.labels.all_items.PAGE", 20)
        assert delivered(world, run) == whole
        monkeypatch.setattr("routing.labels.all_items.PAGE_CHARACTERS", 1)
        # As where the items of a page were imported at very different times.
        monkeypatch.setattr("annotation.common.ranges.SPARSE", 0)
        assert delivered(world, run) == whole

    def test_formats_have_to_be_known(self):
        world = make_world(60)
        run = world.complete(m=20)
        for formats in ([], ["csv", "pdf"]):
            with pytest.raises(InputError, match="Choose at least one of these formats: csv, jsonl"):
                deliver(run=run, user=world.manager, formats=formats)

    def test_a_stretch_of_keys_stands_for_those_in_it(self):
        world = make_world(60)
        keys = list(world.project.items.values_list("pk", flat=True))
        near, far = keys[10:20], [keys[0], keys[-1]]
        assert set(world.project.items.filter(of_items("pk", near)).values_list("pk", flat=True)) == set(near)
        assert set(world.project.items.filter(of_items("pk", far)).values_list("pk", flat=True)) == set(far)
        assert not world.project.items.filter(of_items("pk", [])).exists()
