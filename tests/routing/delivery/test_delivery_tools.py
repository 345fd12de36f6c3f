"""Formats of other tools: doccano's JSON Lines and Ground Truth's manifest."""

import json

import pytest

from routing.labels.page import DeliveryInfo, Row, free_names
from tests.routing.delivery.written import files_written

CHOICES = {"cat": "A cat", "dog": "A dog"}


def lines(name: str, info: DeliveryInfo, rows, texts):
    files, writer = files_written(name, info, rows, texts=texts)
    (content,) = files.values()
    return [json.loads(line) for line in content.decode().splitlines()], writer


class TestDoccano:
    def test_text_labels_and_the_rest_as_metadata(self):
        rows = [
            (
                {"text": "hé\n🦤", "id": 7, "note": None},
                Row("a", label="dog", label_name="A dog", source="person", annotator="ann", run=1),
            ),
            ({"text": "other", "label": "mine"}, Row("b", reason="it waits for a person")),
        ]
        info = DeliveryInfo(["text", "id", "note", "label"], choices=CHOICES)
        (first, second), writer = lines("doccano", info, rows, ["hé\n🦤", "seen"])
        assert list(first)[:2] == ["text", "label"]
        assert (first["text"], first["label"]) == ("hé\n🦤", ["A dog"])
        assert (first["original_id"], first["note"]) == (7, None)
        assert (first["hypac_label"], first["source"], first["annotator"]) == ("dog", "person", "ann")
        assert (second["text"], second["original_text"]) == ("seen", "other")
        assert (second["label"], second["original_label"]) == ([], "mine")
        assert second["reason"] == "it waits for a person"
        assert writer.counts == {"long_labels": 0, "none_of_them": 0, "images": 0}

    def test_several_choices_and_names_that_are_there_twice(self):
        info = DeliveryInfo([], task_type="multiple_choice", choices={"a": "same", "b": "same", "c": "other"})
        rows = [({}, Row("x", label=["a", "c"], label_name=["same", "other"]))]
        ((found,), _) = lines("doccano", info, rows, ["t"])
        assert found["label"] == ["a", "other"]

    def test_answers_are_sequences_and_long_labels_are_counted(self):
        rows = [({}, Row("x", label="y" * 200))]
        ((found,), writer) = lines("doccano", DeliveryInfo([], task_type="long_text"), rows, ["t"])
        assert (found["label"], writer.counts["long_labels"]) == (["y" * 200], 0)
        info = DeliveryInfo([], choices={"k": "n" * 101})
        rows = [({}, Row("x", label="k", label_name="n" * 101))]
        ((found,), writer) = lines("doccano", info, rows, [""])
        assert (found["label"], found["filename"]) == (["n" * 101], "x")
        assert writer.counts == {"long_labels": 1, "none_of_them": 0, "images": 1}

    def test_that_none_of_the_choices_fits_is_counted(self):
        info = DeliveryInfo([], task_type="multiple_choice", choices={"a": "same"})
        rows = [({}, Row("x", label=[], label_name=[])), ({}, Row("y"))]
        (none, missing), writer = lines("doccano", info, rows, ["t", "t"])
        assert (none["label"], missing["label"]) == ([], [])
        assert (none["hypac_label"], missing["hypac_label"]) == ([], None)
        assert writer.counts["none_of_them"] == 1


class TestManifest:
    def test_a_choice_with_what_ground_truth_says_of_it(self):
        rows = [
            ({"source": "web"}, Row("a", label="dog", label_name="A dog", source="M1", uncertainty=0.25)),
            ({}, Row("b", label="cat", label_name="A cat", source="M2", uncertainty=0.5)),
            ({}, Row("c", label="cat", label_name="A cat", source="person", uncertainty=0.5)),
            ({}, Row("d", uncertainty=0.5, reason="nobody could label it")),
        ]
        info = DeliveryInfo(["source"], choices=CHOICES, sources=["M1", "M2"], name="zoo-run2")
        found, writer = lines("manifest", info, rows, ["text", "text", "text", ""])
        assert found[0] == {
            "source": "text",
            "original_source": "web",
            "label": 1,
            "label-metadata": {
                "type": "groundtruth/text-classification",
                "job-name": "zoo-run2",
                "human-annotated": "no",
                "class-name": "A dog",
                "confidence": 0.75,
            },
            "hypac": {
                "external_id": "a", "label": "dog", "label_name": "A dog", "source": "M1",
                "uncertainty": 0.25, "asked": False,
            },
        }  # fmt: skip
        assert [("confidence" in line.get("label-metadata", {})) for line in found] == [
            True,
            False,
            False,
            False,
        ]
        assert found[2]["label-metadata"]["human-annotated"] == "yes"
        assert "label" not in found[3]
        assert found[3]["source-ref"] == "d"
        assert found[3]["hypac"]["reason"] == "nobody could label it"
        assert writer.counts == {"images": 1, "long_lines": 0}

    def test_several_choices_and_long_lines(self):
        info = DeliveryInfo([], task_type="multiple_choice", choices=CHOICES, sources=["M"])
        rows = [
            ({}, Row("a", label=["cat", "dog"], label_name=["A cat", "A dog"], source="M", uncertainty=0.0))
        ]
        ((found,), writer) = lines("manifest", info, rows, ["z" * 100_001])
        assert found["label"] == [0, 1]
        assert found["label-metadata"]["class-map"] == {"0": "A cat", "1": "A dog"}
        assert found["label-metadata"]["confidence-map"] == {"0": 1.0, "1": 1.0}
        assert writer.counts["long_lines"] == 1


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["a", "label"], ["a", "original_label"]),
        (["label", "original_label"], ["original_original_label", "original_label"]),
    ],
)
def test_imported_columns_give_way_to_names_of_the_format(columns, names):
    assert list(free_names(columns, ["label"]).values()) == names
