"""Import: files of texts, and a zip of images, read by the real job.

A text has 200 characters, as in quality.md's target. "first" is the import itself, "again" the same file once
more, of which nothing is added.
"""

import argparse
import csv
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bulk_tools import Row, measured

FORMATS = ("csv", "jsonl")
LETTERS = "etaoin shrdlu cmfwyp vbgkqjxz"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--formats", default=",".join(FORMATS), help=f"of {', '.join(WRITERS)}")
    parser.add_argument("--again", action="store_true", help="import each file a second time, too")


def run(options: argparse.Namespace) -> Iterator[Row]:
    from annotation.models import Item, User
    from annotation.services.projects import create_project

    user = User.objects.create(username="benchmark")
    for name in options.formats.split(","):
        path = Path(options.folder) / f"items.{name}"
        WRITERS[name](path, options.size)
        project = create_project(user=user, name=f"Import of {name}", task_type="short_text")
        stored = _stored(project, path)
        with measured(f"{name}, first", options.size) as row:
            job = _imported(project, user, stored)
        assert project.items.count() == options.size == job.result["added"], job.result
        yield row
        if options.again:
            with measured(f"{name}, again", options.size) as row:
                job = _imported(project, user, stored)
            assert job.result["already_there"] == options.size, job.result
            yield row
        path.unlink()
        Item.objects.filter(project=project)._raw_delete("default")


def _stored(project: Any, path: Path) -> Any:
    from annotation.services.files import store_file

    with path.open("rb") as content:
        return store_file(project=project, content=content, original_name=path.name, media_type="")


def _imported(project: Any, user: Any, stored: Any) -> Any:
    from annotation import jobs
    from annotation.services.imports import preview, start_import

    mapping = preview(stored_file=stored).suggestion
    job = start_import(project=project, user=user, stored_file=stored, mapping=mapping)
    assert jobs.run(job.pk)
    job.refresh_from_db()
    return job


# --- Files --------------------------------------------------------------------------------------------------


def texts(size: int) -> Iterator[tuple[str, str]]:
    """(id, text of 200 characters), all different and the same each time."""
    draw = random.Random(1)
    letters = "".join(draw.choices(LETTERS, k=1_000_000))
    for number in range(size):
        start = draw.randrange(len(letters) - 190)
        yield f"item-{number}", letters[start : start + 190] + f"{number:010}"


def write_csv(path: Path, size: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows(texts(size))


def write_jsonl(path: Path, size: int) -> None:
    with path.open("w") as file:
        for name, text in texts(size):
            file.write(json.dumps({"id": name, "text": text}) + "\n")


WRITERS: dict[str, Callable[[Path, int], None]] = {"csv": write_csv, "jsonl": write_jsonl}
