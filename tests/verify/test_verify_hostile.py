"""Files that are made to harm whoever reads them: a message and exit code 2, soon, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hypac_verify
from hypac_verify import certificate, command, committed_files, draw, manifest, reading, room
from hypac_verify.command import main
from hypac_verify.delivered_file import MORE
from tests.core.certificates import make_files
from tests.verify.reports import found_in

pytestmark = pytest.mark.costly
V6 = Path(__file__).parent.parent / "core" / "data" / "delivery-v6"


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    certificate, draw = make_files()
    return {"certificate.json": certificate, "draw.jsonl": draw}


def with_value(certificate: bytes, where: str, text: str) -> bytes:
    """The certificate with other JSON in place of an entry of its plan."""
    document = json.loads(certificate)
    document["plan"][where] = "\0"
    return json.dumps(document).replace('"\\u0000"', text).encode()


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "9" * 5000,
        "true",
        "-1",
        "0.5",
        "null",
        '"\\ud800"',
        "[" * 100_000,
    ],
    ids=lambda text: text[:10],
)
@pytest.mark.parametrize("where", ["m", "pool_size", "epsilon", "costs"])
def test_numbers_that_are_none(text: str, where: str, files: dict[str, bytes], tmp_path: Path) -> None:
    found = found_in(
        tmp_path, files | {"certificate.json": with_value(files["certificate.json"], where, text)}
    )
    assert found.code == 2
    assert "no delivery holds" not in found.faults


def test_what_people_labelled_alone_promises_nothing(files: dict[str, bytes], tmp_path: Path) -> None:
    labels = {name: data for name, data in files.items() if name not in ("certificate.json", "draw.jsonl")}
    found = found_in(tmp_path, labels)
    assert found.code == 2
    assert "no share of errors was promised" in found.faults
    without_draw = found_in(tmp_path, {name: data for name, data in files.items() if name != "draw.jsonl"})
    assert without_draw.code == 2
    assert "no draw.jsonl" in without_draw.faults


def test_a_path_that_is_not_there_and_an_archive_are_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run-1-delivery-1.zip").write_bytes(b"PK")
    for name, words in (("run-1-delivery-2", "no such folder"), ("run-1-delivery-1.zip", "unpack")):
        assert main([str(tmp_path / name)]) == 2
        told = capsys.readouterr().err
        assert words in told
        assert "people labelled alone" not in told


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\xff\xfe", b"null", b"[]", b"{", b'{"a":1,"a":2}', b"\0" * 100]
)
@pytest.mark.parametrize(
    "name", ["certificate.json", "draw.jsonl", "labels.jsonl", "manifest.json", "labels.csv"]
)
def test_files_that_are_none(data: bytes, name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    if name.startswith("labels") and not data.strip():
        pytest.skip("a file without rows lacks all of them")
    found = found_in(tmp_path, files | {name: data})
    assert found.code == 2
    assert "no delivery holds" not in found.faults


LINE = b'{"answers":[["cat",0.5],["cat",0.5]],"content":"","item_id":"t1","u":0.5}\n'


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{",
        b'{"a":1,"a":2}',
        b"\0" * 100,
        LINE.replace(b"0.5]]", b"1e999]]"),
        LINE.replace(b"0.5]]", b"-0.5]]"),
        LINE.replace(b"0.5]]", b"true]]"),
        LINE.replace(b'"u":0.5', b'"u":"0.5"'),
        LINE.replace(b'"u":0.5', b'"u":2.0'),
        LINE.replace(b',["cat",0.5]', b""),
        LINE.replace(b'["cat",0.5]', b'{"cat":0.5}'),
        LINE.replace(b'"item_id":"t1"', b'"item_id":1'),
    ],
    ids=lambda data: repr(data)[:60],
)
@pytest.mark.parametrize("name", ["committed.jsonl", "answered.jsonl", "pilot.jsonl"])
def test_lines_of_models_that_are_none(data: bytes, name: str, tmp_path: Path) -> None:
    whole = {path.name: path.read_bytes() for path in V6.iterdir()}
    found = found_in(tmp_path, whole | {name: whole[name] + data})
    assert found.code == 2
    assert "no delivery holds" not in found.faults


@pytest.mark.parametrize("name", ["committed.jsonl", "answered.jsonl", "pilot.jsonl"])
def test_lines_of_models_that_come_twice_or_are_of_nothing(name: str, tmp_path: Path) -> None:
    whole = {path.name: path.read_bytes() for path in V6.iterdir()}
    del whole["manifest.json"]
    twice = whole[name].splitlines(keepends=True)[0]
    for line in (twice, LINE.replace(b"t1", b"nowhere")):
        assert found_in(tmp_path, whole | {name: whole[name] + line}).code == 1


def test_a_key_that_stands_twice(files: dict[str, bytes], tmp_path: Path) -> None:
    twice = files["certificate.json"].replace(b'"format":', b'"version":3,"format":', 1)
    found = found_in(tmp_path, files | {"certificate.json": twice})
    assert (found.code, "twice" in found.faults) == (2, True)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("pool_size", 2**53),
        ("pool_size", 10**40),
        ("epsilon", "0." + "0" * 58 + "1"),
        ("alpha", "0." + "0" * 58 + "1"),
        ("epsilon", "0." + "9" * 60),
        ("m", 10**7),
        ("pilot_size", 10**30),
        ("loss", "system"),
    ],
)
def test_sizes_that_would_take_for_ever(
    where: str, value: object, files: dict[str, bytes], tmp_path: Path
) -> None:
    document, began = json.loads(files["certificate.json"]), time.monotonic()
    document["plan"][where] = value
    document["pool"]["size"] = document["plan"]["pool_size"]
    assert found_in(tmp_path, files | {"certificate.json": json.dumps(document).encode()}).code in (1, 2)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("name", ["committed.jsonl", "labels.jsonl"])
def test_a_pool_for_which_the_files_have_no_room_is_refused_before_it_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {path.name: path.read_bytes() for path in V6.iterdir()}
    kept = {"certificate.json", "draw.jsonl", "pilot.jsonl", "README.md", name}
    document = json.loads(whole["certificate.json"])
    document["plan"]["pool_size"] = document["pool"]["size"] = 9_000_000
    forged = {one: data for one, data in whole.items() if one in kept}
    forged["certificate.json"] = json.dumps(document).encode()

    def nobody(*_arguments: object) -> None:
        raise AssertionError("something of the pool's size was computed")

    for module, what in ((draw, "drawn"), (committed_files, "raw_numbers"), (certificate, "_check_tests")):
        monkeypatch.setattr(module, what, nobody)
    found = found_in(tmp_path, forged)
    assert (found.code, f"for which {name} with its" in found.faults) == (1, True)
    # The shortest rows that there can be have room for them.
    assert len(b'{"answers":[],"content":"","item_id":"","u":1}') >= room.COMMITTED
    assert min(map(len, MORE)) >= room.ROW


@pytest.mark.parametrize("tolerance", ["1E99999999", "1E-99999999", "1" * 60, "x"])
def test_a_tolerance_that_would_take_for_ever_is_not_computed(
    tolerance: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    document = json.loads(files["certificate.json"])
    document["plan"] |= {"loss": "numeric", "loss_params": {"absolute": tolerance}}
    found = found_in(tmp_path, files | {"certificate.json": json.dumps(document).encode()})
    assert found.code in (1, 3)
    assert any(line.startswith("the tests, the choice and the sentence") for line in found.unchecked)


def test_a_draw_of_fewer_rows_than_the_plan_draws(files: dict[str, bytes], tmp_path: Path) -> None:
    few = b"".join(files["draw.jsonl"].splitlines(keepends=True)[:3])
    found = found_in(tmp_path, files | {"draw.jsonl": few})
    assert found.code == 1
    assert any("it has 3 rows, and the plan draws" in line for line in found.faults.splitlines())


@pytest.mark.parametrize(
    ("where", "value"), [("pool_size", 2**53 - 1), ("pool_size", 10**9), ("loss", "os:system")]
)
def test_what_cannot_be_computed_or_run_here_is_not_checked(
    where: str, value: object, files: dict[str, bytes], tmp_path: Path
) -> None:
    document = json.loads(files["certificate.json"])
    document["plan"][where] = value
    document["pool"]["size"] = document["plan"]["pool_size"]
    found = found_in(tmp_path, files | {"certificate.json": json.dumps(document).encode()})
    assert found.code == 3
    assert any(line.startswith("the tests, the choice and the sentence") for line in found.unchecked)


def test_rows_without_end(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 1000)
    line = files["draw.jsonl"].split(b"\n")[0] + b"\n"
    assert found_in(tmp_path, files | {"draw.jsonl": line * 1001}).code == 1  # more than the plan has
    assert found_in(tmp_path, files | {"labels.csv": b"a,b\n" * 1001}).code == 2
    monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
    found = found_in(tmp_path, files | {"labels.jsonl": b" " * 10_000})
    assert (found.code, "too long" in found.faults) == (2, True)


def test_what_is_no_file(files: dict[str, bytes], tmp_path: Path) -> None:
    found_in(tmp_path, files)
    (tmp_path / "draw.jsonl").unlink()
    os.mkfifo(tmp_path / "draw.jsonl")
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "nothing")]) == 2


def test_a_name_that_no_disk_can_hold_and_items_that_go_nowhere_are_refused_in_words(
    files: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_in(tmp_path, with_manifest(files, **{"a" * 300: 1}))
    assert (found.code, "File name too long" in found.faults) == (2, True)
    assert main([str(tmp_path), "--to", "mine.csv"]) == 2
    assert "--to is where the items of --spot go" in capsys.readouterr().err


def with_manifest(files: dict[str, bytes], **named: int) -> dict[str, bytes]:
    entries = {name: {"bytes": size, "sha256": ""} for name, size in named.items()}
    manifest = {"format": "hypac-manifest", "version": 1, "files": entries}
    return files | {"manifest.json": json.dumps(manifest).encode()}


def test_a_folder_that_is_a_link_is_not_looked_into(
    files: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, elsewhere = tmp_path / "delivery", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "private").touch()
    found_in(folder, with_manifest(files))
    (folder / "dataset").symlink_to(elsewhere)
    assert main([str(folder)]) == 2
    told = "".join(capsys.readouterr())
    assert ("dataset: a link to a folder" in told, "private" in told) == (True, False)


def test_of_files_that_no_manifest_names_the_first_are_told(
    files: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found_in(tmp_path, with_manifest(files))
    (tmp_path / "dataset").mkdir()
    for number in range(30):
        (tmp_path / "dataset" / f"part-{number}").touch()
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert (told.count("part-"), "and 23 more" in told) == (7, True)  # beside the files of the fixture


def test_sizes_are_compared_before_a_file_is_read_and_what_takes_long_is_said(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, said = list[int](), list[str]()
    found_in(tmp_path, files)
    monkeypatch.setattr(manifest.hashlib, "sha256", lambda: Nothing(read))
    os.truncate(tmp_path / "draw.jsonl", 5 * 2**40)
    due = [("draw.jsonl", tmp_path / "draw.jsonl", 5 * 2**40 + 1, "")]
    report = reading.Report(say=said.append)
    assert manifest._held(due, report) == set()
    assert (read, said, len(report.faults)) == ([], [], 1)
    with pytest.raises(InterruptedError):
        manifest._held([(*due[0][:2], 5 * 2**40, "")], report)
    assert said == ["reading 5,497,558,138,880 bytes that the manifest names"]


class Nothing:
    """Of a hash, what it is given; whoever has waited long enough stops it."""

    def __init__(self, read: list[int]) -> None:
        self.read = read

    def update(self, block: bytes) -> None:
        self.read.append(len(block))
        raise InterruptedError


def test_whoever_waits_may_stop_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "main", stopped)
    with pytest.raises(SystemExit) as ended:
        command.run()
    assert (ended.value.code, capsys.readouterr().err) == (130, "hypac-verify: stopped\n")


def test_no_name_of_a_file_moves_the_cursor_or_begins_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b\x1b[2J\nHOLDS"):
        (tmp_path / f"{name}-certificate.json").touch()
    assert main([str(tmp_path)]) == 2
    _, err = capsys.readouterr()
    assert "\\x1b[2J\\nHOLDS" in err
    assert (err.count("\n"), "\x1b" in err) == (1, False)


def test_the_command_needs_nothing_else_and_says_its_code(files: dict[str, bytes], tmp_path: Path) -> None:
    found_in(tmp_path, files)
    package = str(Path(hypac_verify.__file__).parents[1])
    start = f"import sys; sys.path.insert(0, {package!r}); "
    words = [sys.executable, "-I", "-c", start + "import hypac_verify.__main__"]
    done = subprocess.run([*words, str(tmp_path), "--json"], capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["code"], done.stderr) == (3, 3, "")
    assert all((told["on_trust"], told["not_checked"], not told["faults"]))
    imported = start + "import hypac_verify.command; print(*sys.modules)"
    modules = subprocess.run([*words[:3], imported], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "django", "routing"} & set(modules.stdout.split())
    (tmp_path / "certificate.json").write_bytes(b"{")
    done = subprocess.run([*words, str(tmp_path), "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["code"]) == (2, 2)
    assert "Traceback" not in done.stderr
