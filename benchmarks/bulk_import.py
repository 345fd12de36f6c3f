"""The parts `import` and `send` of benchmarks/bulk.py."""

import argparse
import csv
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from runner import Row, children_of, forget_peak, measured, peak_mib, served, stage

LETTERS = "etaoin shrdlu cmfwyp vbgkqjxz"
OPTIONS = {
    "formats": ("csv,jsonl", "of csv, jsonl, parquet, zip"),
    "again": (False, "measure more than the first import"),
}


def measure(options: argparse.Namespace) -> None:
    """Files of texts, or a zip of small images, read by the real job.

    A text has 200 characters. "first" is the import itself; `--again` imports each file once more, of which
    nothing is added, finds the place at nine tenths of it, as an import does that goes on there, and takes
    the import back. The note says how long this process was at work: the rest is the database.
    """
    from annotation.common.files import store_file
    from annotation.models import User
    from annotation.projects.manage import create_project

    user = User.objects.create(username="benchmark")
    for name in options.formats.split(","):
        path = Path(os.environ["HYPAC_VAR"]) / f"items.{name}"
        WRITERS[name](path, options.size)
        project = create_project(user=user, name=f"Import of {name}", task_type="short_text")
        with path.open("rb") as content:
            stored = store_file(project=project, content=content, original_name=path.name, media_type="")
        path.unlink()
        with stage(f"{name}, first", options.size):
            job = imported(project, user, stored)
        assert project.items.count() == options.size == job.result["added"], job.result
        if options.again:
            import_again(name, options.size, project, user, stored, job)


def import_again(name: str, size: int, project: Any, user: Any, stored: Any, first: Any) -> None:
    from annotation.common.files import open_file
    from annotation.imports.check import check_import
    from annotation.imports.formats import registry
    from annotation.imports.undo import start_undo, undo_objection
    from annotation.imports.upload import preview
    from annotation.jobs import jobs

    with stage(f"{name}, again", size):
        again = imported(project, user, stored)
    assert again.result["already_there"] == size, again.result
    look = preview(stored_file=stored)
    with stage(f"{name}, what it would do, on the page", size, 0):
        check_import(stored_file=stored, mapping=look.suggestion, format_name=look.format)
    place = size * 9 // 10
    with stage(f"{name}, to the place at 9/10", size, place), open_file(stored) as file:
        next(registry.get(look.format).records(file, "x", skip=place))
    with stage(f"{name}, whether it can be taken back", size, 0):
        assert undo_objection(first) == ""
    with stage(f"{name}, taken back", size):
        assert jobs.run(start_undo(job=first, user=user).pk)
    assert not project.items.exists()


def imported(project: Any, user: Any, stored: Any) -> Any:
    from annotation.imports.upload import preview, start_import
    from annotation.jobs import jobs

    mapping = preview(stored_file=stored).suggestion
    job = start_import(project=project, user=user, stored_file=stored, mapping=mapping)
    assert jobs.run(job.pk)
    job.refresh_from_db()
    return job


def send(options: argparse.Namespace) -> None:
    """Predictions that a program sends with the Python client, in one request to `manage.py serve`.

    A project gets so many items, then a source a prediction for each. "web server" is one row up to the
    answer, "worker" one until all is taken in; each with the most memory that its processes held (Linux).
    """
    from annotation.people.tokens import make_token
    from hypac_client import Client
    from testbed.factories import make_user

    size, file = options.size, Path(os.environ["HYPAC_VAR"]) / "predictions.jsonl"
    write_lines(file, map(prediction, range(size)))
    token = make_token(user=make_user(), name="benchmark")[1]
    with served() as (address, pid), Client(address, token, timeout=600) as client:
        project = client.projects.create(f"Sending {size}", choices=["yes", "no"])
        items = ({"id": f"item-{n}", "text": f"text {n}"} for n in range(size))
        project.import_data(items, id_column="id", text_column="text").wait()
        source = project.sources.add("mine", params={"model": "m", "revision": "1"})
        for process in children_of(pid):
            forget_peak(process)
        with measured("answered", size) as answered:
            job = source.upload_predictions(file)
        with measured("taken in", size) as taken:
            result = job.wait().result
        assert result["added"] == size, result
        taken.seconds += answered.seconds
        show_sent(answered, taken, children_of(pid), file.stat().st_size)


def show_sent(answered: Row, taken: Row, processes: list[int], body: int) -> None:
    web = {pid for pid in processes if "waitress" in Path(f"/proc/{pid}/cmdline").read_text()}
    answered.peak_mib = sum(map(peak_mib, web))
    answered.note = f"web server; {body / 2**20:.1f} MiB were sent"
    taken.peak_mib, taken.note = sum(map(peak_mib, set(processes) - web)), "worker"
    answered.show()
    taken.show()


def prediction(n: int) -> dict[str, object]:
    return {"external_id": f"item-{n}", "label": "yes" if n % 3 else "no", "confidence": 0.5 + n % 500 / 1000}


# --- Files ---


def texts(size: int) -> Iterator[tuple[str, str]]:
    """(id, text of 200 characters), all different and the same each time."""
    draw = random.Random(1)
    letters = "".join(draw.choices(LETTERS, k=1_000_000))
    for number in range(size):
        start = draw.randrange(len(letters) - 190)
        yield f"item-{number}", letters[start : start + 190] + f"{number:010}"


def write_csv(path: Path, size: int) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *texts(size)])


def write_jsonl(path: Path, size: int) -> None:
    write_lines(path, ({"id": name, "text": text} for name, text in texts(size)))


def write_lines(path: Path, rows: Iterable[object]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_parquet(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    rows = texts(size)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while part := list(islice(rows, 100_000)):
            names, contents = map(list, zip(*part, strict=True))
            writer.write_table(pa.table({"id": names, "text": contents}, schema=schema))


def write_zip(path: Path, size: int) -> None:
    from testbed.factories import make_image

    with zipfile.ZipFile(path, "w") as archive:
        for number in range(size):
            archive.writestr(f"{number:07}.png", make_image(number, size=(16, 16)))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "zip": write_zip,
}
