"""The folder of a Hugging Face data set, read by `datasets` itself."""

import json
from pathlib import Path

import datasets
import pytest

from annotation.errors import InputError
from routing.labels.kinds import Kinds
from routing.labels.page import DeliveryInfo, Row
from tests.routing.delivery.written import files_written, kinds_of

CHOICES = {"cat": "A cat", "dog": "A dog"}
ROWS = [
    (
        {"text": "عربي 🦤\n\r\n\u2028", "n": 1, "x": 1, "flag": True, "tags": ["a", None], "odd": {"a": [1]}},
        Row("a", label="dog", label_name="A dog", source="person", p_i="0.9", asked=True, run=1),
    ),
    (
        {"text": "=1+1", "n": None, "x": 0.5, "flag": None, "tags": [], "odd": "text", "none": None},
        Row("b", label="cat", label_name="A cat", source="M", uncertainty=0.1 + 0.2, run=1),
    ),
    (
        {"text": "", "n": 2**62, "x": -3, "flag": False, "tags": None, "odd": 7},
        Row("c", reason="it waits for a person"),
    ),
]
COLUMNS = ["text", "n", "x", "flag", "tags", "odd", "none"]


def loaded(files: dict[str, bytes], folder: Path) -> datasets.Dataset:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return datasets.load_from_disk(folder / "dataset")


def test_it_loads_with_types_and_equal_values(tmp_path):
    info = DeliveryInfo(COLUMNS, choices=CHOICES, kinds=kinds_of(ROWS), name="animals-run1")
    files, writer = files_written("huggingface", info, ROWS)
    found = loaded(files, tmp_path)
    assert found.features["label"] == datasets.ClassLabel(names=["cat", "dog"])
    assert found.features["n"] == datasets.Value("int64")
    assert found.features["x"] == datasets.Value("float64")
    assert found.features["flag"] == datasets.Value("bool")
    assert found.features["tags"] == datasets.List(datasets.Value("string"))
    assert found.features["p_i"] == datasets.Value("decimal128(9, 8)")
    rows = list(found)
    for column in ("text", "n", "x", "flag", "tags"):
        assert [row[column] for row in rows] == [original[column] for original, _ in ROWS]
    assert [row["odd"] for row in rows] == ['{"a":[1]}', "text", "7"]
    assert writer.counts == {"mixed": 2}
    assert [row["label"] for row in rows] == [1, 0, None]
    assert [row["label_name"] for row in rows] == ["A dog", "A cat", None]
    assert rows[1]["uncertainty"] == 0.1 + 0.2
    assert rows[2]["reason"] == "it waits for a person"
    assert [row["none"] for row in rows] == [None] * 3


def test_several_choices_are_lists_of_classes(tmp_path):
    rows = [({"text": "x"}, Row("a", label=["cat", "dog"], label_name=["A cat", "A dog"])),
            ({"text": "y"}, Row("b", label=[], label_name=[]))]  # fmt: skip
    info = DeliveryInfo(["text"], task_type="multiple_choice", choices=CHOICES)
    files, _ = files_written("huggingface", info, rows)
    found = loaded(files, tmp_path)
    assert found.features["label"] == datasets.List(datasets.ClassLabel(names=["cat", "dog"]))
    assert found["label"][:] == [[0, 1], []]


def test_texts_as_labels_and_columns_of_our_names(tmp_path):
    rows = [({"label": "mine", "text": "x"}, Row("a", label="free text"))]
    files, _ = files_written("huggingface", DeliveryInfo(["label", "text"], task_type="short_text"), rows)
    (row,) = loaded(files, tmp_path)
    assert (row["label"], row["hypac_label"]) == ("mine", "free text")


def test_large_ones_come_in_shards_and_state_names_them(tmp_path, monkeypatch):
    monkeypatch.setattr("routing.delivery.formats.huggingface.BATCH", 10)
    monkeypatch.setattr("routing.delivery.formats.huggingface.SHARD_BYTES", 20_000)
    rows = [({"text": f"{index} " + "x" * 500}, Row(f"t{index}")) for index in range(95)]
    files, _ = files_written("huggingface", DeliveryInfo(["text"]), rows, 17, 60)
    shards = [name for name in files if name.endswith(".arrow")]
    assert len(shards) > 1
    assert shards[0] == f"dataset/data-00000-of-{len(shards):05d}.arrow"
    state = json.loads(files["dataset/state.json"])
    assert [f"dataset/{entry['filename']}" for entry in state["_data_files"]] == shards
    assert loaded(files, tmp_path)["text"][:] == [original["text"] for original, _ in rows]


def test_long_texts_end_a_batch_early(monkeypatch, tmp_path):
    monkeypatch.setattr("routing.delivery.formats.huggingface.BATCH_CHARACTERS", 1000)
    rows = [({"text": "y" * 700}, Row(f"t{index}")) for index in range(5)]
    files, _ = files_written("huggingface", DeliveryInfo(["text"]), rows)
    found = loaded(files, tmp_path)
    assert [chunk.num_rows for chunk in found.data.to_batches()] == [2, 2, 1]


def test_nothing_to_deliver_is_an_empty_data_set(tmp_path):
    files, _ = files_written("huggingface", DeliveryInfo(["text"], choices=CHOICES), [])
    assert len(loaded(files, tmp_path)) == 0


def test_a_label_that_is_no_choice_any_more_is_refused():
    with pytest.raises(InputError, match="'emu' is none of the choices"):
        files_written("huggingface", DeliveryInfo([], choices=CHOICES), [({}, Row("a", label="emu"))])


def test_other_labels_give_another_fingerprint():
    def state(label: str) -> str:
        files, _ = files_written(
            "huggingface", DeliveryInfo([], choices=CHOICES), [({}, Row("a", label=label))]
        )
        return json.loads(files["dataset/state.json"])["_fingerprint"]

    assert state("cat") == state("cat") != state("dog")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "number"),
        ([1, 2**60], "integer"),
        ([2**60, 0.5], "mixed"),
        ([2**60, 1, 0.5], "mixed"),
        ([2**64], "mixed"),
        ([True, 1], "mixed"),
        (["5", 5], "mixed"),
        ([[1], [0.5], [], None], "list of number"),
        ([[[1]]], "mixed"),
        ([["a"], "a"], "mixed"),
        ([[], []], "list of "),
        (["a", None], None),
        ([None], None),
    ],
)
def test_a_column_has_a_kind_where_its_cells_agree(values, kind):
    for order in (values, values[::-1]):
        kinds = Kinds()
        for value in order:
            kinds.add([{"c": value}])
        assert kinds.of_columns().get("c") == kind
