"""Which files of a folder are an earlier delivery's, whatever its manifest says; here and in the client."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hypac_client import deliveries as client
from routing.delivery import folder as server

pytestmark = pytest.mark.parametrize("side", [server, client])
OLD = hashlib.sha256(b"old").hexdigest()


def stale(side: Any, folder: Path, named: dict[str, str]) -> list[Path]:
    """What is removed where the next delivery has labels.csv."""
    (folder / "manifest.json").write_text(json.dumps({"files": {n: {"sha256": s} for n, s in named.items()}}))
    found: list[Path] = side.stale_files(folder, {"labels.csv", "manifest.json"})
    side.remove(folder, found)
    return found


def test_a_file_of_the_next_delivery_is_not_removed_by_another_spelling(side: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("old")
    (tmp_path / "sub").mkdir()
    names = ("./labels.csv", "sub/../labels.csv", "sub//../labels.csv", str(tmp_path / "labels.csv"))
    assert stale(side, tmp_path, dict.fromkeys(names, OLD)) == []


def test_no_link_leads_elsewhere(side: Any, tmp_path: Path) -> None:
    folder, other = tmp_path / "out", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "theirs").write_text("old")
    (folder / "link").symlink_to(other)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "file").symlink_to(other / "theirs")
    names = ("link/theirs", "loop", "loop/x", "file", "../other/theirs")
    assert stale(side, folder, dict.fromkeys(names, OLD)) == []
    assert (other / "theirs").exists()


def test_what_is_no_file_is_left(side: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "labels.xlsx").write_text("old")
    names = dict.fromkeys(("", ".", "mine", "nothing/here", "a\0b", "\ud800", "a" * 5000), "")
    assert stale(side, tmp_path, {**names, "labels.xlsx": OLD}) == [tmp_path / "labels.xlsx"]
    assert (tmp_path / "mine").is_dir()
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    assert side.stale_files(tmp_path, set()) == []
