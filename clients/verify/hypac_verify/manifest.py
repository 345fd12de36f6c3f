"""The manifest: size and SHA-256 of each file of a delivery (docs/deliveries.md)."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from hypac_verify.reading import (
    Report,
    UnusableError,
    object_of,
    opened,
    parse,
    part,
    whole_file,
)

SHOWN, SAID_FROM = 10, 2**31
"""Names of files that are told at most, and bytes from which on it is said that they are read."""


def check_manifest(folder: Path, manifest: Path | None, present: dict[str, Path], report: Report) -> set[str]:
    """Size and SHA-256 of each file that the manifest names; what of ``present`` it holds so."""
    if manifest is None:
        report.notes.append("There is no manifest.json: deliveries had none before it was introduced.")
        return set()
    stated = parse(whole_file(manifest), "manifest.json")
    files = object_of(stated, "manifest.json").get("files")
    if not isinstance(files, dict) or stated.keys() != {"format", "version", "files"}:
        raise UnusableError("manifest.json: no manifest of a delivery")
    if stated["format"] != "hypac-manifest" or type(stated["version"]) is not int or stated["version"] != 1:
        raise UnusableError("manifest.json: unknown here")
    before, missing, due = len(report.faults), [], list[tuple[str, Path, int, str]]()
    for name, entry in files.items():
        where = f"manifest.json, {name[:80]!r}"
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or "\\" in name or "\0" in name or not name:
            raise UnusableError(f"{where}: the name leads out of the folder")
        object_of(entry, where)
        size, digest = part(entry, "bytes", int, where), part(entry, "sha256", str, where)
        if entry.keys() != {"bytes", "sha256"}:
            report.fault(f"{where}: other entries")
        path = present.get(name, folder / name)
        if not path.is_file():
            missing.append(name)
        else:
            due.append((name, path, size, digest))
    held = _held(due, report)
    known = {inside for name in files for inside in (name, name.partition("/")[0])}
    extra = sorted(present.keys() - known - {"manifest.json"})
    extra += sorted(_inside(present) - files.keys())
    if extra:
        report.fault(f"manifest.json: it does not name {_first(extra)}")
    if missing:
        report.unchecked.append(
            f"files that the manifest names and that are not here: {_first(sorted(missing))}"
        )
    if len(report.faults) == before:
        report.checked.append(f"the manifest: size and SHA-256 of {len(files) - len(missing)} files")
    return {name for name in present if name in held or any(one.startswith(f"{name}/") for one in held)}


def _held(due: list[tuple[str, Path, int, str]], report: Report) -> set[str]:
    """Which names, of those due with path, size and SHA-256, are files that are so. Whoever waits for long is
    told what for: a size that nothing has to fill costs whoever made the folder nothing.
    """
    total = sum(size for _, path, size, _ in due if path.stat().st_size == size)
    if total > SAID_FROM:
        report.say(f"reading {total:,} bytes that the manifest names")
    held = set[str]()
    for name, path, size, digest in due:
        if _is_so(path, size, digest):
            held.add(name)
        else:
            report.fault(f"manifest.json, {name[:80]!r}: the file is not of this size and SHA-256")
    return held


def _first(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _inside(present: dict[str, Path]) -> set[str]:
    """What lies in folders of the delivery."""
    folders = [(name, path) for name, path in present.items() if path.is_dir()]
    return {
        f"{name}/{file.relative_to(path).as_posix()}"
        for name, path in folders
        for file in path.rglob("*")
        if not file.is_dir()
    }


def _is_so(path: Path, size: int, sha256: str) -> bool:
    """Whether it is of this size and SHA-256; one of another size is not read."""
    digest, read = hashlib.sha256(), 0
    with opened(path) as file:
        if path.stat().st_size != size:
            return False
        while read <= size and (block := file.read(2**20)):
            read += len(block)
            digest.update(block)
    return read == size and digest.hexdigest() == sha256
