"""Deliveries: labels with their provenance, checked against what the server says of them."""

import hashlib
import json
from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from hypac_client import frames
from hypac_client.errors import ChecksumError, HypacError
from hypac_client.models import DeliveryData, DeliveryFile
from hypac_client.resource import Resource
from hypac_client.texts import read_json
from hypac_client.transport import Transport

CERTIFICATE, MANIFEST = "certificate.json", "manifest.json"
RECORD = ".hypac.json"
"""In a folder whose project's files it holds."""
READABLE = ("labels.jsonl", "labels.parquet", "labels.json", "labels.csv")
TRIES = 5


class Delivery(Resource):
    """A set of files that never change."""

    data: DeliveryData
    made = True
    """False where `Run.deliver` found that this one holds everything already."""

    @property
    def id(self) -> int:
        return int(self.data["id"])

    @property
    def files(self) -> list[DeliveryFile]:
        """Each with `name`, `size`, `sha256` and `media_type`."""
        return [file.copy() for file in self.data["files"]]

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate. Its bytes are checked: their SHA-256 is its id."""
        content = self.read(CERTIFICATE)
        stated = self.data.get("certificate")
        if stated and hashlib.sha256(content).hexdigest() != stated:
            raise ChecksumError(f"{CERTIFICATE} is not the certificate {stated}")
        return dict(read_json(content))

    def read(self, name: str) -> bytes:
        """A whole file; its SHA-256 is checked."""
        file = self._file(name)
        content = self._transport.content(self._address(name), most=int(file["size"]))
        if hashlib.sha256(content).hexdigest() != file["sha256"]:
            raise ChecksumError(f"{name} did not arrive as it was made")
        return content

    def to_dataframe(self) -> Any:
        """A pandas DataFrame, one row an item; the first of JSONL, Parquet, JSON and CSV that there is.

        What HyPAC adds has the same types whichever it is, and NaN or None where there is nothing to say.
        """
        names = [file["name"] for file in self.files]
        name = next((name for name in READABLE if name in names), None)
        if name is None:
            raise HypacError(f"This delivery has none of {', '.join(READABLE)}, but {', '.join(names)}.")
        return frames.table_of(self.read(name), name)

    def download(self, folder: str | PathLike[str]) -> list[Path]:
        """All files into `folder`. What is there already and right is kept, what broke off goes on. What an
        earlier delivery left there and this one does not have is removed, if nobody changed it; the manifest,
        by which that is known, comes last. A folder with a delivery of another project is refused, and so is
        one that has a file of such a name which no delivery left there.
        """
        target, files = Path(folder), sorted(self.files, key=lambda file: file["name"] == MANIFEST)
        self._refuse_others_folder(target)
        stale, places = stale_files(target, {file["name"] for file in files}), places_of(target, files)
        paths = []
        for file, path in zip(files, places, strict=True):
            if file["name"] == MANIFEST:
                remove(target, stale)
            paths.append(fetch(self._transport, self._address(file["name"]), file, path))
        record = {
            "project": self._project,
            "delivery": self.id,
            "given": "",
            "files": [file["name"] for file in files],
        }  # as manage.py deliver leaves one
        (target / RECORD).write_text(json.dumps(record), encoding="utf-8")
        return paths

    @property
    def _project(self) -> str:
        return self._path.partition("projects/")[2].partition("/")[0]

    def _refuse_others_folder(self, folder: Path) -> None:
        other = record_of(folder).get("project", self._project)
        if other != self._project:
            raise HypacError(
                f"{folder} holds a delivery of the project {other!r}. Choose another folder, or remove all "
                f"that is in it, {RECORD} as well."
            )

    def is_in(self, folder: str | PathLike[str]) -> bool:
        """Whether it was downloaded into `folder` last."""
        manifest = next((file for file in self.files if file["name"] == MANIFEST), None)
        path = Path(folder) / MANIFEST
        return manifest is not None and path.is_file() and digest(path) == manifest["sha256"]

    def _file(self, name: str) -> DeliveryFile:
        for file in self.files:
            if file["name"] == name:
                return file
        raise HypacError(f"This delivery has no {name}, but {', '.join(f['name'] for f in self.files)}.")

    def _address(self, name: str) -> str:
        return f"{self._path}files/{quote(name)}"


def record_of(folder: Path) -> dict[str, Any]:
    """What a download left in the folder: `project`, the id of the `delivery` and the names of its `files`;
    empty where none did.
    """
    try:
        return dict(read_json((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def inside(folder: Path, name: str) -> Path:
    """Where a file of that name goes. A name that leads out of `folder`, is hidden or no line shows is
    refused.
    """
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") for part in parts)
    if not parts or hidden or name.startswith("/") or set("\\:") & set(name) or not name.isprintable():
        raise HypacError(f"{name!r} is no name of a file of a delivery")
    return folder.joinpath(*parts)


def places_of(folder: Path, files: Sequence[DeliveryFile]) -> list[Path]:
    """Where each goes. One behind a link, or whose place has what no delivery left there, is refused."""
    left = {MANIFEST, *manifest_of(folder), *map(str, record_of(folder).get("files", ()))}
    places = [inside(folder, file["name"]) for file in files]
    for file, place in zip(files, places, strict=True):
        if inside(folder.resolve(), file["name"]) != place.resolve():
            raise HypacError(f"{place} leads elsewhere by a link. Choose another folder, or remove it.")
        if file["name"] not in left and place.exists() and digest(place) != file["sha256"]:
            words = "is there, and no delivery left it. Choose another folder, or remove it."
            raise HypacError(f"{place} {words}")
    return places


def manifest_of(folder: Path) -> dict[str, str]:
    """SHA-256 of each file that a download left in the folder, by its name; empty where none did."""
    try:
        found = read_json((folder / MANIFEST).read_bytes())["files"]
        return {str(name): str(facts["sha256"]) for name, facts in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def stale_files(folder: Path, names: Collection[str]) -> list[Path]:
    """Files in `folder` that its manifest names, none of `names`, and that still are what it says."""
    left = manifest_of(folder).items()
    return [
        inside(folder, name) for name, sha256 in left if name not in names and _is_ours(folder, name, sha256)
    ]


def _is_ours(folder: Path, name: str, sha256: str) -> bool:
    """Whether it names a file in `folder` in the one way in which a delivery does, without a link on the way,
    and that is what the manifest says.
    """
    try:
        path = inside(folder.resolve(), name)
        plain = PurePosixPath(name).as_posix() == name and path.resolve() == path
        return plain and path.is_file() and digest(path) == sha256
    except (HypacError, OSError, ValueError, RuntimeError):  # no name of a file, or a link to itself
        return False


def remove(folder: Path, paths: Sequence[Path]) -> None:
    """With the folders within `folder` that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == folder or next(parent.iterdir(), None) is not None:
                break
            parent.rmdir()


def fetch(transport: Transport, address: str, file: DeliveryFile, target: Path) -> Path:
    """Load `address` into `target`, going on behind what an earlier try left beside it. That has a part of
    the SHA-256 in its name: what another delivery left is not of this file.
    """
    if target.is_file() and digest(target) == file["sha256"]:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{file['sha256'][:16]}.part")
    for attempt in range(1, TRIES + 1):
        try:
            _go_on(transport, address, part, int(file["size"]))
            break
        except ChecksumError:
            part.unlink()
            raise
        except HypacError as error:
            if error.status is not None or attempt == TRIES:
                raise
            transport.sleep(transport.retries.pause(attempt))
    if digest(part) != file["sha256"]:
        part.unlink()
        raise ChecksumError(f"{target.name} did not arrive as it was made; nothing of it was kept")
    part.replace(target)
    return target


def _go_on(transport: Transport, address: str, part: Path, size: int) -> None:
    there = part.stat().st_size if part.exists() else 0
    if there > size:
        part.unlink()
        there = 0
    if part.exists() and there == size:
        return
    # Ranges count the file's own bytes, not those of a compressed answer.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={there}-"} if there else {})}
    with transport.stream(address, headers=headers) as response:
        goes_on = response.status_code == 206
        left = size - there if goes_on else size
        with part.open("ab" if goes_on else "wb") as out:
            for piece in response.iter_bytes():
                left -= len(piece)
                if left < 0:
                    raise ChecksumError(
                        f"{address} is longer than its {size:,} bytes; nothing of it was kept"
                    )
                out.write(piece)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
