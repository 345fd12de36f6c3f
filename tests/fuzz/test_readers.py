"""Each reader of foreign bytes for a moment, with the same damage each time; `make fuzz` takes minutes."""

import io
import json
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.imports.formats.registry import IMPORTERS
from testbed.fuzz import corpus, imports, texts
from testbed.fuzz.loop import fuzzed, replayed
from testbed.fuzz.mutations import files_in, zipped
from testbed.fuzz.readers import TARGETS
from testbed.fuzz.target import Target

pytestmark = pytest.mark.costly


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_read_or_refused(name: str) -> None:
    target = replace(TARGETS[name], guided=False)
    outcome = fuzzed(target, runs=target.runs)
    assert [f"{one.error}\n{one.trace}\n{one.data!r}" for one in outcome.findings] == []


def test_every_importer_is_tried() -> None:
    tried = {*imports.SEEDS, *(name for names in imports.ALIKE.values() for name in names)}
    assert tried == set(IMPORTERS)


@pytest.mark.parametrize("name", imports.SEEDS)
def test_damage_begins_with_what_is_whole(name: str) -> None:
    seeds = imports.SEEDS[name]()
    assert seeds
    for number, data in enumerate(seeds):
        if data[:2] != b"\x1f\x8b" and number == 0:
            imports.read_import([name], data)


# --- What failed once ---


def parquet(name: str) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: ["x"]}), buffer)
    return buffer.getvalue()


def with_other_bytes(archive: bytes, within: bytes) -> bytes:
    """One bit of a file in an archive differs, which its sum tells."""
    before, found, after = archive.rpartition(within)
    assert found
    return before + bytes([within[0] ^ 1]) + within[1:] + after


def with_other_deflated(archive: bytes, name: str) -> bytes:
    """What is compressed of its first file begins as no block does."""
    start = 30 + len(name)
    return archive[:start] + b"\x07" + archive[start + 1 :]


def backup(old: bytes, new: bytes) -> bytes:
    """With other words in one of its files."""
    files = files_in(TARGETS["backup"].seeds()[0])
    changed = {name: content.replace(old, new) for name, content in files.items()}
    assert changed != files
    return zipped(changed)


CHANGED: list[tuple[str, str, bytes]] = [
    ("import-argilla", "damaged", with_other_bytes(zipped({
        "d/.argilla/settings.json": b"{}", "d/records.json": b'[{"fields": {"text": "a cat"}}]'}), b"a cat")),
    ("import-zip_images", "damaged", with_other_bytes(
        zipped({"a.png": corpus.images()[0], "metadata.csv": b"file_name,x\na.png,a cat\n"}), b"a cat")),
    ("import-zip_texts", "damaged", zipped({"a.txt": b"one"})[5:]),
    ("import-zip_texts", "damaged", zipped({"": b"one", "a.txt": b"two"})),
    ("import-hf_dataset", "is damaged", b"XX" + zipped(corpus.delivered("huggingface"))[2:]),
    ("import-parquet", "NUL", parquet("a\0b")),
    ("predictions", "No field", b'{"external_id": "a", "label": "cat", "\\ud800": 1}'),
    ("backup", "wrong kind", backup(b'"database.sqlite3"', b"1")),
    ("backup", "names no file", backup(b'{"name": "x"', b"[")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "data"), CHANGED, ids=range(len(CHANGED)))
def test_what_failed_once_is_refused_in_words(name: str, words: str, data: bytes) -> None:
    target = TARGETS[name]
    assert replayed(target, data) is None
    with pytest.raises(target.refusals, match=words):
        target.read(data)


@pytest.mark.parametrize("name", ["a.csv", "mimetype"])
def test_what_a_damaged_archive_holds_is_left_to_whoever_reads_it(name: str) -> None:
    archive = zipped({name: b"a,b\n" * 20}, zipfile.ZIP_DEFLATED)
    assert replayed(TARGETS["detect"], with_other_deflated(archive, name)) is None


def test_no_encoding_is_offered_in_which_a_text_has_a_nul() -> None:
    assert replayed(TARGETS["detect"], "a,b\n\0c,é\n".encode("utf-16-le") * 9) is None


@pytest.mark.parametrize("score", ["1e999", "NaN", "9" * 400])
def test_a_number_that_no_float_holds_is_none(score: str) -> None:
    prediction = json.dumps(corpus.LS_TASK["predictions"][0]).replace("0.5", score)
    completion = json.dumps(texts.COMPLETION).replace("-0.1", score)
    for name, data in (("ml-backend", prediction), ("completions", completion)):
        assert score in data
        assert replayed(TARGETS[name], data.encode()) is None


# --- The one who looks ---


def test_a_fault_is_found_once_made_small_and_told_from_others() -> None:
    def read(data: bytes) -> None:
        if b"cat" in data and b"dog" in data:
            raise KeyError("both")
        if data.endswith(b"!"):
            raise ValueError("a refusal")

    target = Target("x", read, lambda: [b"a cat and more", b"a dog!"], (ValueError,))
    (found,) = fuzzed(target, runs=400, seed=3).findings
    assert found.error == "KeyError: 'both'"
    assert found.data in (b"catdog", b"dogcat")


def test_what_never_ends_is_ended() -> None:
    def read(data: bytes) -> None:
        while data:
            pass

    finding = replayed(Target("x", read, lambda: [b""], seconds=0.05), b"x")
    assert finding
    assert finding.where == "TooSlowError"
