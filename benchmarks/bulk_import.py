"""The parts `import` and `send` of benchmarks/bulk.py."""

import argparse
import csv
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from runner import Row, children_of, forget_peak, measured, peak_mib, served, stage

LETTERS = "etaoin shrdlu cmfwyp vbgkqjxz"


def measure(options: argparse.Namespace, size: int) -> None:
    from annotation.common.files import store_file
    from annotation.imports.upload import preview, start_import
    from annotation.jobs import jobs
    from testbed.factories import make_project

    for name in (options.formats or "csv,jsonl").split(","):
        path = Path(os.environ["HYPAC_VAR"]) / f"items.{name}"
        WRITERS[name](path, size)
        project = make_project(task_type="short_text", choices=[])
        with path.open("rb") as content:
            stored = store_file(project=project, content=content, original_name=path.name, media_type="")
        path.unlink()
        with stage(f"{name}, first", size):
            mapping = preview(stored_file=stored).suggestion
            job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)
            assert jobs.run(job.pk)
        assert project.items.count() == size


def send(_options: argparse.Namespace, size: int) -> None:
    """A project gets so many items, then a source a prediction for each. "web server" is one row up to the
    answer, "worker" one until all is taken in; each with the most memory that its processes held (Linux).
    """
    from annotation.people.tokens import make_token
    from hypac_client import Client
    from testbed.factories import make_user

    file = Path(os.environ["HYPAC_VAR"]) / "predictions.jsonl"
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


def write_zip(path: Path, size: int) -> None:
    from testbed.factories import make_image

    with zipfile.ZipFile(path, "w") as archive:
        for number in range(size):
            archive.writestr(f"{number:07}.png", make_image(number, size=(16, 16)))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "zip": write_zip,
}
