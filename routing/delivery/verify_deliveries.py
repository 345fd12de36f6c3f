"""A stored delivery against its files, and what these repeat against the run.

For deliveries that somebody else has stored, who may have written down anything. Labels may have been
corrected since, so that its rows are not computed again.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.models import StoredFile
from routing.delivery.formats.csv import CsvWriter
from routing.delivery.formats.jsonl import JsonlWriter
from routing.delivery.parts import RECORD
from routing.delivery.places import MANIFEST
from routing.labels.page import added_names
from routing.models import Certificate, Delivery, FinalCertificate, Run
from routing.runs.commitment_queries import committed_files
from routing.runs.verification import recomputing, refuse

Found = TypeVar("Found")


def verify_deliveries(run: Run) -> None:
    """Raises DiffersError where a delivery of the run has another number, other files or other counts than
    its files say, or a certificate that is not the run's.
    """
    with recomputing():
        deliveries = list(run.deliveries.order_by("number").prefetch_related("files__file"))
        for place, delivery in enumerate(deliveries, start=1):
            if delivery.number != place:
                refuse(iter([f"delivery {delivery.number} stands where number {place} was made"]))
            refuse(_faults(run, delivery, {one.name: one.file for one in delivery.files.all()}))


def _faults(run: Run, delivery: Delivery, files: dict[str, StoredFile]) -> Iterator[str]:
    named = f"delivery {delivery.number}"
    for name, sha256 in _of_run(run).items():
        if (files[name].sha256 if name in files else None) != sha256:
            yield f"{named}: its {name} is not that of its run"
    for final in FinalCertificate.objects.filter(audit__run=run):
        if "final_audit.json" in files and files["final_audit.json"].sha256 != final.sha256:
            yield f"{named}: its final_audit.json is not that of its run"
    if (manifest := _read(files, MANIFEST, json.load)) is not None:
        listed = {
            name: {"bytes": file.size, "sha256": file.sha256}
            for name, file in files.items()
            if name != MANIFEST
        }
        if manifest["files"] != listed:
            yield f"{named}: it has other files than its manifest.json lists"
    yield from (f"{named}: {fault}" for fault in _count_faults(delivery, files))


def _of_run(run: Run) -> dict[str, str]:
    """The hashes of files that are the same in all deliveries of a run."""
    certificate = Certificate.objects.filter(run=run).first()
    if certificate is None:
        return {}
    found = {
        "certificate.json": certificate.sha256,
        "draw.jsonl": hashlib.sha256(certificate.draw_lines.encode()).hexdigest(),
    }
    if (committed := committed_files(run)) is not None:
        items, pilot = committed
        found["committed.jsonl"] = items.sha256
        if pilot:
            found["pilot.jsonl"] = hashlib.sha256(pilot.encode()).hexdigest()
    return found


def _count_faults(delivery: Delivery, files: dict[str, StoredFile]) -> Iterator[str]:
    if delivery.items is not None and delivery.rows > delivery.items:
        yield f"it is said to have {delivery.rows} rows of {delivery.items} items"
    if not delivery.is_part and delivery.items not in (None, delivery.rows):
        yield f"it is said to be of all {delivery.items} items, and to have {delivery.rows} rows"
    given = delivery.given
    records = delivery.rows if delivery.filters else delivery.items
    if given is not None and records is not None and given.size != RECORD.size * records:
        yield "what it gave out is of another number of items than it is said to have"
    label = added_names(delivery.run.project.columns, ("label",))["label"]
    if (rows := _read(files, CsvWriter.file_name, _cells)) not in (None, delivery.rows):
        yield f"it is said to have {delivery.rows} rows, and its {CsvWriter.file_name} has {rows}"
    found = _read(files, JsonlWriter.file_name, lambda content: _lines(content, label))
    if found is not None and found[0] != delivery.rows:
        yield f"it is said to have {delivery.rows} rows, and its {JsonlWriter.file_name} has {found[0]}"
    if found is not None and found[1] not in (None, delivery.blanks):
        yield (
            f"it is said to have {delivery.blanks} rows without a label, and its {JsonlWriter.file_name} has "
            f"{found[1]}"
        )


def _lines(content: IO[bytes], label: str) -> tuple[int, int | None]:
    """Rows, and how many of them have no label; None where another column has that name now."""
    rows, blanks, known = 0, 0, True
    for line in content:
        row = json.loads(line)
        rows += 1
        known = known and label in row
        blanks += row.get(label) is None
    return rows, blanks if known else None


def _cells(content: IO[bytes]) -> int:
    """Rows below the first. Cells may have ends of lines within quotes, and be of any length."""
    rows = quotes = 0
    for line in content:
        quotes += line.count(b'"')
        rows += quotes % 2 == 0
    return rows - 1


def _read(files: dict[str, StoredFile], name: str, read: Callable[[IO[bytes]], Found]) -> Found | None:
    """None where there is no such file, or the storage had lost it before."""
    if name not in files:
        return None
    try:
        with open_file(files[name]) as content:
            return read(content)
    except InputError:
        return None
