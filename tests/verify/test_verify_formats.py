"""Each format of a delivery is checked: its labels where they can be read, all else by the manifest."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from annotation.models import Item
from hypac_verify.command import check
from hypac_verify.delivered_file import OTHERS, READABLE, Delivered, rows_of
from hypac_verify.reading import Report, UnusableError
from hypac_verify.workbook import SHEET
from routing.delivery.formats import FORMATS
from testbed.delivered import delivered
from testbed.forgeries import put_right
from testbed.worlds import make_world
from tests.verify.reports import Files

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture(scope="module")
def every_format(django_db_setup: None, django_db_blocker: Any) -> Files:
    """A delivery in all formats, with texts that are hard to write."""
    with django_db_blocker.unblock(), transaction.atomic():
        world = make_world(60)
        texts = ("=1+1", " _x0041_ ", "a\rb\n\tc\x01", "'-2", "\U0001f40b", "<&>", "")
        for item, text in zip(world.project.items.order_by("pk"), texts, strict=False):
            Item.objects.filter(pk=item.pk).update(data={**item.data, "text": text})
        files = delivered(world, world.complete(m=30), tuple(FORMATS))
        transaction.set_rollback(True)
    return files


def written(folder: Path, files: Files) -> Report:
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return check([folder])[0]


def test_a_delivery_in_all_formats_is_held_and_says_what_by_hash_alone(
    every_format: Files, tmp_path: Path
) -> None:
    report = written(tmp_path, every_format)
    assert (report.faults, report.unchecked) == ([], [])
    assert [line for line in report.notes if "SHA-256" in line] == [
        "Held by size and SHA-256 of manifest.json alone, not read: labels.parquet, dataset, the numbers of "
        "classes in labels.manifest, results and configuration in label_studio."
    ]
    assert {line.partition(":")[0] for line in report.checked} >= set(READABLE)
    (rows,) = {tuple(map(_without_types, rows_of(tmp_path / name, name))) for name in READABLE[:5]}
    assert len(rows) == 60


def _without_types(row: Delivered) -> tuple[Any, ...]:
    return (*((k, v) for k, v in row.originals.items() if v), row.external_id, row.label, row.source, row.run)


def test_what_no_manifest_has_a_hash_of_is_left_open(every_format: Files, tmp_path: Path) -> None:
    report = written(tmp_path, {name: every_format[name] for name in every_format if name != "manifest.json"})
    assert [line.partition(":")[0] for line in report.unchecked] == [
        *OTHERS,
        *("the numbers of classes in labels.manifest", "results and configuration in label_studio"),
    ]


@pytest.mark.parametrize("name", ["dataset/state.json", "labels.parquet", "label_studio/config.xml"])
def test_a_byte_that_is_changed_in_a_file_that_is_not_read_is_found(
    every_format: Files, tmp_path: Path, name: str
) -> None:
    report = written(tmp_path, {**every_format, name: every_format[name][:-1] + b"?"})
    assert any(f"manifest.json, '{name}'" in fault for fault in report.faults)


def test_a_file_that_was_put_into_a_folder_is_found(every_format: Files, tmp_path: Path) -> None:
    report = written(tmp_path, {**every_format, "dataset/data-more.arrow": b"x"})
    assert "manifest.json: it does not name dataset/data-more.arrow" in report.faults


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("labels.json", b'"label":"cat"', b'"label":"dog"'),
        ("doccano.jsonl", b'"label":["cat"]', b'"label":["dog"]'),
        ("doccano.jsonl", b'"hypac_label":"cat"', b'"hypac_label":"dog"'),
        ("labels.manifest", b'"class-name":"cat"', b'"class-name":"dog"'),
        ("labels.manifest", b'"human-annotated":"no"', b'"human-annotated":"yes"'),
        ("label_studio/tasks.json", b'"source":"person"', b'"source":"fast"'),
    ],
)
def test_a_label_that_is_changed_in_one_format_alone_is_found(
    every_format: Files, tmp_path: Path, name: str, old: bytes, new: bytes
) -> None:
    assert old in every_format[name]
    changed = put_right({**every_format, name: every_format[name].replace(old, new, 1)})
    report = written(tmp_path, changed)
    assert any(fault.startswith(name.partition("/")[0]) for fault in report.faults), report.faults


def test_a_label_that_is_changed_in_a_workbook_is_found(every_format: Files, tmp_path: Path) -> None:
    report = written(
        tmp_path,
        put_right(
            {**every_format, "labels.xlsx": _sheet_with(every_format["labels.xlsx"], b">person<", b">fast<")}
        ),
    )
    assert any(fault.startswith("labels.xlsx") for fault in report.faults)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"<worksheet ", b'<!DOCTYPE worksheet [<!ENTITY a "b">]><worksheet ', "declares a document type"),
        (b"</sheetData>", b"", "no XML"),
        (b't="inlineStr"', b't="s"', "of another kind"),
        (b'r="B2"', b'r="A2"', "without a place of its own"),
    ],
)
def test_a_workbook_of_another_make_is_refused(
    every_format: Files, tmp_path: Path, old: bytes, new: bytes, says: str
) -> None:
    path = tmp_path / "labels.xlsx"
    path.write_bytes(_sheet_with(every_format["labels.xlsx"], old, new))
    with pytest.raises(UnusableError, match=says):
        list(rows_of(path, "labels.xlsx"))


def _sheet_with(workbook: bytes, old: bytes, new: bytes) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(workbook)) as given, zipfile.ZipFile(made, "w") as out:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename == SHEET:
                assert old in content
                content = content.replace(old, new, 1)
            out.writestr(entry, content)
    return made.getvalue()
