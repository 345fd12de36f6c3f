"""What `hypac-verify` says of files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypac_verify.command import check, code_of
from hypac_verify.reading import UnusableError

Files = dict[str, bytes]


@dataclass(frozen=True)
class Found:
    """The exit code, and everything that does not hold, is not checked, or cannot be read."""

    code: int
    faults: str
    unchecked: tuple[str, ...]
    notes: str
    checked: str = ""


def found_in(folder: Path, files: Files) -> Found:
    """Write these files, and nothing else, into the folder, and check it."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        report, _, _ = check([folder])
    except UnusableError as error:
        return Found(2, str(error), (), "")
    said = ("\n".join(lines) for lines in (report.notes, report.checked))
    return Found(code_of(report), "\n".join(report.faults), tuple(report.unchecked), *said)
