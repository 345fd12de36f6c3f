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
    before, missing, held = len(report.faults), [], set[str]()
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
        elif _digest(path, size) != digest:
            report.fault(f"{where}: the file is not of this size and SHA-256")
        else:
            held.add(name)
    known = {inside for name in files for inside in (name, name.partition("/")[0])}
    extra = sorted(present.keys() - known - {"manifest.json"})
    extra += sorted(_inside(present) - files.keys())
    if extra:
        report.fault(f"manifest.json: it does not name {', '.join(extra)}")
    if missing:
        report.unchecked.append(
            f"files that the manifest names and that are not here: {', '.join(sorted(missing)[:10])}"
        )
    if len(report.faults) == before:
        report.checked.append(f"the manifest: size and SHA-256 of {len(files) - len(missing)} files")
    return {name for name in present if name in held or any(one.startswith(f"{name}/") for one in held)}


def _inside(present: dict[str, Path]) -> set[str]:
    """What lies in folders of the delivery."""
    folders = [(name, path) for name, path in present.items() if path.is_dir()]
    return {
        f"{name}/{file.relative_to(path).as_posix()}"
        for name, path in folders
        for file in path.rglob("*")
        if not file.is_dir()
    }


def _digest(path: Path, size: int) -> str:
    """SHA-256 of a file of this size; '' of one of another."""
    digest, read = hashlib.sha256(), 0
    with opened(path) as file:
        while block := file.read(2**20):
            read += len(block)
            if read > size:
                return ""
            digest.update(block)
    return digest.hexdigest() if read == size else ""
