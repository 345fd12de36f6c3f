"""The version of before, from the history of the checkout."""

import subprocess
from pathlib import Path

from testbed.image.podman import run

INITIAL = ("annotation/migrations/0001_initial.py", "routing/migrations/0001_initial.py")


def newest(root: Path) -> tuple[str, str] | None:
    """Name and commit of the newest released version whose databases can be upgraded.

    Before there is one: the first commit that begins with the migrations of today. None: a checkout without
    history.
    """
    for tag in _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname"):
        if all(
            _git(root, "rev-parse", f"{tag}:{path}") == _git(root, "rev-parse", f"HEAD:{path}")
            for path in INITIAL
        ):
            return tag, tag
    first = _git(root, "log", "-1", "--format=%H", "--", *INITIAL)
    shallow = _git(root, "rev-parse", "--is-shallow-repository") != ["false"]
    return (
        None if shallow or not first else (f"the first commit with these tables ({first[0][:8]})", first[0])
    )


def unpack(root: Path, commit: str, folder: Path) -> Path:
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    run(["git", "-C", str(root), "archive", "--output", str(archive), commit])
    run(["tar", "--extract", "--no-same-owner", "--file", str(archive), "--directory", str(folder)])
    archive.unlink()
    run(["chmod", "-R", "a+rX", str(folder)])
    return folder


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1]
