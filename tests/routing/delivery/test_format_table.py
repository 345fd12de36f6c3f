"""What each format carries there and back: 120 hard rows are delivered in all of them, imported again into
another project, and compared. The table in docs/deliveries.md is what this finds; formats that carry the
same share a row.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.rows import text_hash
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.labelling.labels_of_record import record_values
from annotation.models import Item, Job, Project
from routing.delivery.deliver import deliver
from routing.delivery.formats import FORMATS
from testbed.factories import make_project
from testbed.worlds import CHOICES, World, files_of, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

DOCUMENT = Path("docs/deliveries.md")
BEGIN, END = "<!-- round trips: begin -->\n", "<!-- round trips: end -->\n"
ROWS = 120
HEADER = (
    *(
        "format",
        "names",
        "texts",
        "blank cells",
        "whole numbers",
        "fractions",
        "truth values",
        "lists",
        "null",
    ),
    "people's labels",
)
TEXTS = [
    *("plain", "  spaces around  ", 'quotes " and "" and \', a comma; a semicolon', "line\nbreak"),
    *(
        "windows\r\nbreak, a tab\t.",
        "\rreturn",
        "مرحبا بالعالم שלום",
        "👩‍👩‍👧‍👦 🦤 e\u0301 \u00e9",
        "long " * 6_000,
    ),
    *("\u2028line separator\u2029 \ufeff \u200f \ud7ff \U0010ffff", "null", "NaN", "007", "1e5", "true"),
    *('{"a": 1}', "[1]", "\\n \\ \\\\", "<b>&amp;</b>", "<r><t>rich</t></r>", "_x0041_", "bell \x07.", "]]>"),
    *("=1+1", "@cmd", "-5", "- 5", "'quoted", "'=1+1", "''@x", "\t=1", "＝1", "sep=;", "#N/A", "0.10"),
]
NAMES = ["=1+1", "@sum", "+4", "-4", "'=1+1", "a,b", 'a"b', "é 👩", "007", "1e5", "true", "a b", "<i>", "[x]"]
TYPED: list[dict[str, Any]] = [
    {"number": 1, "share": 0.1 + 0.2, "flag": True, "tags": ["a", "ü"], "nothing": None},
    {"number": None, "share": -1e-300, "flag": False, "tags": [], "nothing": None},
    {"number": 2**53 - 1, "share": 3.5, "flag": None, "tags": None, "nothing": None},
    {"number": -7, "share": 1e300, "flag": True, "tags": ["=1"], "nothing": None},
]
NOTHING = "nothing"
FIELDS = ("number", "share", "flag", "tags", NOTHING)


def hard_world() -> World:
    world = make_world(ROWS)
    items = list(world.project.items.order_by("position"))
    truth = {}
    for index, item in enumerate(items):
        name = f"{NAMES[index % len(NAMES)]} {index}" if index >= len(NAMES) else NAMES[index]
        truth[name] = world.truth[item.external_id]
        item.external_id = name
        item.text = (
            TEXTS[index % len(TEXTS)] if index < len(TEXTS) else f"{TEXTS[index % len(TEXTS)]} {index}"
        )
        item.content_hash = text_hash(item.text)
        typed = TYPED[index % len(TYPED)]
        item.data |= {"text": item.text, "note": ["", " ", "=x", "x"][index % 4]}
        item.data |= {field: "" if typed[field] is None else _as_text(typed[field]) for field in FIELDS}
        item.typed = dict(typed)
    world.truth = truth
    Item.objects.bulk_update(items, ["external_id", "text", "content_hash", "data", "typed"])
    project = world.project
    project.columns = list(dict.fromkeys([*project.columns, "text", "note", *FIELDS]))
    project.save(update_fields=["columns"])
    return world


def packed(files: dict[str, bytes], name: str) -> tuple[str, bytes]:
    """The file of a format to import; of a folder what is in it, as an archive or alone."""
    if not name.endswith("/"):
        return name, files[name]
    if name == "label_studio/":
        return next((path.replace("/", "-"), files[path]) for path in files if path.endswith("tasks.json"))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in files.items():
            if path.startswith(name):
                archive.writestr(path, content)
    return f"{name.rstrip('/')}.zip", out.getvalue()


def imported(name: str, content: bytes) -> Project:
    project = make_project(choices=list(CHOICES))
    stored = store_file(
        project=project, content=io.BytesIO(content), original_name=name, media_type="text/plain"
    )
    columns = preview(stored_file=stored).columns
    text = next(column for column in ("text", "source") if column in columns)
    names = "external_id" if "external_id" in columns else ""  # a task of Label Studio has its name itself
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=stored,
        mapping=ColumnMapping(id_column=names, text_column=text),
        keep_labels=True,
        add_duplicates=True,
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return project


def kept(project: Project, world: World, labels: dict[str, Any]) -> list[str]:
    """Of what is compared, whether it came back as it was: of all rows, of some of them, or as a text."""
    before = {item.external_id: item for item in world.project.items.all()}
    found = {item.external_id: item for item in project.items.all()}
    assert found.keys() <= before.keys()
    both = [(before[name], item) for name, item in found.items()]
    given = record_values(project, [item.pk for item in found.values()])
    said = {name: record.value for name, item in found.items() if (record := given.get(item.pk))}
    assert said.keys() <= labels.keys()
    return [
        _share(len(both), ROWS),
        _share(sum(one.text == other.text for one, other in both), ROWS),
        _share(sum(one.data["note"] == other.data.get("note") for one, other in both), ROWS),
        *(_share_of_values(both, field) for field in FIELDS),
        _share(sum(said.get(name) == label for name, label in labels.items()), len(labels)),
    ]


def _share_of_values(both: Sequence[tuple[Item, Item]], field: str) -> str:
    there = [pair for pair in both if field == NOTHING or pair[0].typed[field] is not None]
    same = sum(repr(one.typed[field]) == repr(_value(other, field)) for one, other in there)
    if same:
        return _share(same, len(there))
    assert all(other.data[field] == _as_text(one.typed[field]) for one, other in there)
    return "as empty" if field == NOTHING else "as text"


def _value(item: Item, field: str) -> Any:
    return (item.typed or {}).get(field, item.data.get(field, ""))


def _as_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _share(count: int, of: int) -> str:
    return "all" if count == of else f"{count} of {of}"


def test_the_table_in_the_documents_says_what_comes_back() -> None:
    world = hard_world()
    run = world.complete(m=60)
    deliver(run=run, user=world.manager, formats=list(FORMATS))
    world.do("deliver_run")
    files = files_of(run.deliveries.get())
    ids = dict(world.project.items.values_list("pk", "external_id"))
    labels = {ids[pk]: record.value for pk, record in record_values(world.project, list(ids)).items()}
    assert len(labels) > ROWS // 3
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, writer in FORMATS.items():
        project = imported(*packed(files, writer.file_name))
        alike.setdefault(tuple(kept(project, world, labels)), []).append(f"`{name}`")
    lines = [f"| {' | '.join(HEADER)} |\n", f"|{'---|' * len(HEADER)}\n"]
    lines += [f"| {', '.join(names)} | {' | '.join(found)} |\n" for found, names in alike.items()]
    table = "".join(lines)
    written = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert written == table, f"Put this into {DOCUMENT}:\n{table}"
