"""Deliveries pushed to a data set of the Hugging Face Hub, each as one commit: the files as they were
delivered in the folder `delivery`, and above it README.md, the data card, which says where the rows are.
"""

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.files import BLOCK, open_file
from annotation.common.own_folders import OwnFolder
from annotation.errors import ConflictError, HypacError, InputError
from annotation.jobs.context import JobContext
from annotation.models import Connection, Job
from annotation.outside.buckets import ObjectInfo
from annotation.outside.connections import hub_of
from annotation.outside.hub import NO_BRANCH, NO_DATA_SET, Repository, has_content
from annotation.words import Words
from routing.delivery.places import MANIFEST, NOT_AS_SENT, OTHER_OBJECT
from routing.models import Delivery, DeliveryFile

FOLDER = "delivery/"
CARD = "README.md"
MOST_BYTES = 8 * 1024**2  # of a manifest or a card that is read to see whose it is
# What the Hub shows as the rows, and `datasets.load_dataset` reads: the first of these that was delivered.
ROWS = ("labels.parquet", "labels.jsonl", "labels.csv")
ARROW = "dataset/data-*.arrow"

NO_CARD = failures.register(
    "no_data_card", gettext_noop("This delivery has no README.md. Make a new one, and push that.")
)


def push(
    context: JobContext, connection: Connection, delivery: Delivery, files: list[DeliveryFile]
) -> dict[str, Any]:
    """The part of the job "export_delivery" for such connections. What another delivery had there gives way
    to this one, which is whole or not there. Raises ConflictError where something is in the place of its
    files that no delivery of this project put there, and it may not be replaced.
    """
    prefix = context.params["prefix"]
    with hub_of(connection) as repository, OwnFolder("push") as folder:
        at, there = _looked_at(repository, prefix)
        paths = _copied(context, files, Path(folder))
        wanted = {f"{prefix}{FOLDER}{name}": path for name, path in paths.items()}
        wanted[f"{prefix}{CARD}"] = _card(delivery, paths, prefix, Path(folder))
        listed = _listed(repository, prefix, there)
        if not context.params["overwrite"]:
            _refuse_others(context, repository, there, listed, wanted, f"{prefix}{CARD}")
        same = [key for key, path in wanted.items() if key in there and has_content(path, there[key])]
        gone = [key for key in listed.names if key in there and key not in wanted]
        address, card = "", _sha256(wanted[f"{prefix}{CARD}"])
        if gone or len(same) < len(wanted):
            context.progress(stage=Words(gettext_noop("Sending to the Hub")))
            with context.chunk():  # before it is there: the next one knows it by that
                Job.objects.filter(pk=context.job.pk).update(result={"card": card})
            title = f"Delivery {delivery.number} of run {delivery.run.number} of {delivery.run.project.slug}"
            address = repository.commit(wanted, gone=gone, message=title, after=at)
            _compare(repository, prefix, wanted)
    result = {
        "bucket": connection.bucket,
        "prefix": prefix,
        "files": len(files),
        "sent": len(wanted) - len(same),
        "already_there": len(same),
        "bytes": sum(entry.file.size for entry in files),
        "commit": address,
        "card": card,
    }
    with context.chunk(done=len(files) + 1):
        audit.record(
            project=context.job.project,
            actor=context.job.created_by,
            action="delivery.exported",
            target=f"delivery:{delivery.pk}",
            data={"connection": connection.name, **result},
        )
    return result


def _looked_at(repository: Repository, prefix: str) -> tuple[str, dict[str, ObjectInfo]]:
    """The revision, asked before what lies there: what somebody else writes meanwhile is not overwritten."""
    if _there(repository, prefix) is None:
        repository.make()
    return repository.revision(), _there(repository, prefix) or {}


class _Listed(NamedTuple):
    """What the manifest that is there names, itself included, and its SHA-256; nothing for no manifest."""

    names: frozenset[str] = frozenset()
    sha256: str = ""


def _listed(repository: Repository, prefix: str, there: dict[str, ObjectInfo]) -> _Listed:
    found = there.get(f"{prefix}{FOLDER}{MANIFEST}")
    if found is None or found.size > MOST_BYTES:
        return _Listed()
    content = b"".join(repository.chunks(found))
    try:
        document = json.loads(content)
        names = document["files"] if document["format"] == "hypac-manifest" else {}
        keys = frozenset(f"{prefix}{FOLDER}{name}" for name in (*names, MANIFEST))
    except (ValueError, KeyError, TypeError, RecursionError):
        return _Listed()
    return _Listed(keys, hashlib.sha256(content).hexdigest())


def _refuse_others(
    context: JobContext,
    repository: Repository,
    there: dict[str, ObjectInfo],
    listed: _Listed,
    wanted: dict[str, Path],
    card: str,
) -> None:
    """Raises ConflictError where something would be replaced that no delivery of this project put there."""
    project = context.job.project
    manifests = DeliveryFile.objects.filter(delivery__run__project=project, name=MANIFEST)
    ours: Collection[str] = ()
    if listed.sha256 and manifests.filter(file__sha256=listed.sha256).exists():
        ours = listed.names
    for key, found in there.items():
        if key == card:
            digest = hashlib.sha256()
            for piece in repository.chunks(found) if found.size <= MOST_BYTES else ():
                digest.update(piece)
            pushed = project.jobs.filter(result__card=digest.hexdigest())
            is_ours = pushed.exists() or has_content(wanted[key], found)
        else:
            is_ours = key in ours or (bool(ours) and key not in wanted)
        if not is_ours:
            raise OTHER_OBJECT.error(raised_as=ConflictError, where="prefix", key=key)


def _sha256(path: Path) -> str:
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _there(repository: Repository, prefix: str) -> dict[str, ObjectInfo] | None:
    """What lies where we write: name -> the file that was found; None where there is no such data set, or no
    such branch of it, yet.
    """
    try:
        found = {entry.key: entry for entry in repository.list_objects(f"{prefix}{FOLDER}")}
        card = repository.head(f"{prefix}{CARD}")
    except InputError as error:
        if error.code not in (NO_DATA_SET.code, NO_BRANCH.code):
            raise
        return None
    return found | ({card.key: card} if card else {})


def _copied(context: JobContext, files: list[DeliveryFile], folder: Path) -> dict[str, Path]:
    """The library reads files of this machine; those of the site may lie in an object store."""
    paths = {}
    for number, entry in enumerate(files, 1):
        context.progress(stage=Words.name(entry.name))
        path = folder / str(number)
        with open_file(entry.file) as content, open(path, "wb") as out:
            while block := content.read(BLOCK):
                out.write(block)
        paths[entry.name] = path
        context.progress(done=number)
    return paths


def _card(delivery: Delivery, paths: dict[str, Path], prefix: str, folder: Path) -> Path:
    """The card of the delivery, with what the Hub reads of a data set in front of it."""
    from huggingface_hub import DatasetCardData

    if CARD not in paths:
        raise NO_CARD.error()
    rows = next((name for name in ROWS if name in paths), "")
    if not rows and any(name.startswith("dataset/") for name in paths):
        rows = ARROW
    read: dict[str, Any] = {}
    if rows:
        files = [{"split": "train", "path": f"{prefix}{FOLDER}{rows}"}]
        read = {"configs": [{"config_name": "default", "data_files": files}]}
    head = DatasetCardData(pretty_name=delivery.run.project.name, tags=["hypac"], **read)
    card = folder / "card"
    said = paths[CARD].read_text(encoding="utf-8")
    card.write_text(f"---\n{head.to_yaml()}\n---\n\n{said}", encoding="utf-8", newline="\n")
    return card


def _compare(repository: Repository, prefix: str, wanted: dict[str, Path]) -> None:
    there = _there(repository, prefix) or {}
    for key, path in wanted.items():
        if key not in there or not has_content(path, there[key]):
            raise NOT_AS_SENT.error(raised_as=HypacError, where="connection", permanent=False, key=key)
