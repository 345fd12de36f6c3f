"""Certificates: the same bytes for the same labels, and every change to the published files is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nextafter
from pathlib import Path
from typing import Any

import pytest

from routing.core.calibration import Calibration
from routing.core.certificate import canonical_bytes, certificate_document
from routing.core.documents import DocumentError
from routing.core.verify import main, verify
from tests.core.certificates import DRAWN, ENTROPY, SIZE, Files, make_files
from tests.core.worlds import plan_of


@pytest.fixture(scope="module")
def files() -> Files:
    return make_files()


@pytest.mark.parametrize("target", ["dataset", "pool", "population"])
@pytest.mark.parametrize("certified", [True, False])
def test_a_certificate_follows_from_its_draw(target: str, certified: bool) -> None:
    assert verify(*make_files(target, certified=certified)) == []


def test_the_same_labels_give_the_same_bytes(files: Files) -> None:
    assert make_files(shuffle=True) == files


def test_the_document_is_plain_json(files: Files) -> None:
    document = json.loads(files[0])
    assert document["format"] == "hypac-certificate"
    assert document["plan"]["epsilon"] == "0.05"
    assert document["plan"]["bound"] == "hypergeometric"
    assert document["chains"][0]["policies"][0]["thresholds"] == [None, None]
    assert document["draw"]["unanswered"] == 1
    assert document["provenance"] == {"run": "digits/1", "ledger": ["0.05"]}
    assert canonical_bytes(document) == files[0]


def test_an_indented_certificate_is_as_good(files: Files) -> None:
    assert verify(json.dumps(json.loads(files[0]), indent=2).encode(), files[1]) == []


def first_asked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["asked"] and row["label"])


def change_label(rows: list[dict[str, Any]]) -> None:
    first_asked(rows)["label"] = "7"


def change_answer(rows: list[dict[str, Any]]) -> None:
    first_asked(rows)["answers"][0] = None


def change_score(rows: list[dict[str, Any]]) -> None:
    first_asked(rows)["u"] += 1e-9


def change_tie_break(rows: list[dict[str, Any]]) -> None:
    rows[5]["v"] += 1


def change_asked(rows: list[dict[str, Any]]) -> None:
    row = first_asked(rows)
    row["asked"], row["label"] = False, None


def swap_items(rows: list[dict[str, Any]]) -> None:
    rows[3]["item_id"], rows[4]["item_id"] = rows[4]["item_id"], rows[3]["item_id"]


def replace_item(rows: list[dict[str, Any]]) -> None:
    rows[3]["item_id"], rows[3]["position"] = "another", (rows[3]["position"] + 1) % SIZE


def drop_row(rows: list[dict[str, Any]]) -> None:
    del rows[9]


def repeat_row(rows: list[dict[str, Any]]) -> None:
    rows.append(dict(rows[9]))


def reorder(rows: list[dict[str, Any]]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_label, "draw.sha256"),
        (change_answer, "draw.sha256"),
        (change_score, "draw.sha256"),
        (change_tie_break, "salt and item id give"),
        (change_asked, "but the entropy gives True"),
        (swap_items, "salt and item id give"),
        (replace_item, "but the entropy draws"),
        (drop_row, "(pool position"),
        (repeat_row, "claim the same place"),
        (reorder, "not in the order"),
    ],
)
def test_a_changed_draw_is_found(
    files: Files, change: Callable[[list[dict[str, Any]]], None], words: str
) -> None:
    rows = [json.loads(line) for line in files[1].splitlines()]
    change(rows)
    draw = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert any(words in line for line in verify(files[0], draw))


def test_a_changed_label_shows_in_the_counts(files: Files) -> None:
    """Also where the hash in the certificate was changed with it."""
    rows = [json.loads(line) for line in files[1].splitlines()]
    lowest = min((row for row in rows if row["asked"] and row["label"]), key=lambda row: row["u"])
    lowest["label"] = "7"
    draw = "".join(json.dumps(row) + "\n" for row in rows).encode()
    lines = verify(files[0], draw)
    document = json.loads(files[0])
    document["draw"]["sha256"] = next(
        line.split("recomputed ")[1].strip("'") for line in lines if "sha256" in line
    )
    again = verify(canonical_bytes(document), draw)
    assert not any("sha256" in line for line in again)
    assert any(".observed is" in line for line in again)


def edit(document: dict[str, Any], path: str, value: object) -> None:
    *parents, last = path.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("result.thresholds.0", [0.99, 5]),
        ("result.thresholds.1", None),
        ("result.certified", False),
        ("result.certified", 1),
        ("result.policy", 3),
        ("result.observed_errors", 0),
        ("result.allowed_errors", 30),
        ("result.sentence", "All labels are right."),
        ("result.expected_net_saving", 0.99),
        ("result.pointwise_upper_bound", 0.001),
        ("chains.0.policies.50.observed", 99),
        ("chains.0.policies.50.certified", False),
        ("chains.0.policies.200.thresholds.1", None),
        ("chains.0.level", "1/2"),
        ("chains.0.prefixes.wide", 202.00000001),
        ("draw.entropy", str(ENTROPY + 1)),
        ("draw.asked", 299),
        ("draw.salt", "00"),
        ("plan.epsilon", "0.06"),
        ("plan.alpha", "0.1"),
        ("plan.p", "0.8"),
        ("plan.pool_size", 1300),
        ("plan.m", 299),
        ("extra", 1),
    ],
)
def test_a_changed_certificate_is_found(files: Files, path: str, value: object) -> None:
    document = json.loads(files[0])
    edit(document, path, value)
    assert verify(canonical_bytes(document), files[1])


@pytest.mark.parametrize("source", [0, 1])
@pytest.mark.parametrize("part", [0, 1])
def test_a_threshold_is_held_to_its_last_digit(files: Files, source: int, part: int) -> None:
    """Many items may have scores that differ by less than any tolerance."""
    document = json.loads(files[0])
    threshold = document["result"]["thresholds"][source]
    threshold[part] = nextafter(threshold[part], inf)
    assert any("result.thresholds" in line for line in verify(canonical_bytes(document), files[1]))


def test_a_key_that_stands_twice_is_named(files: Files) -> None:
    """Somebody who reads the file may see the first of two values, this program the last."""
    certificate = files[0].replace(b'"alpha":"0.05"', b'"alpha":"0.01","alpha":"0.05"')
    with pytest.raises(DocumentError, match="'alpha' stands there twice"):
        verify(certificate, files[1])
    with pytest.raises(DocumentError, match=r"line 1: .*'label' stands there twice"):
        verify(files[0], files[1].replace(b'"label":', b'"label":"7","label":', 1))


def test_a_row_holds_nothing_else_and_in_one_spelling(files: Files) -> None:
    with pytest.raises(DocumentError, match="line 1: 'note' is no part of a row"):
        verify(files[0], files[1].replace(b'"label":', b'"note":1,"label":', 1))
    with pytest.raises(DocumentError, match=r"writes it as '0\.9'"):
        verify(files[0], files[1].replace(b'"p":"0.9"', b'"p":"0.90"', 1))
    with pytest.raises(DocumentError, match="no text of a decimal number"):
        verify(files[0], files[1].replace(b'"p":"0.9"', b'"p":"9e-999999999"', 1))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("plan", None, "'plan' is missing"),
        ("plan.epsilon", "x", "plan"),
        ("plan.epsilon", 0.05, "no text"),
        ("plan.epsilon", "0." + "1" * 10**5, "no text"),
        ("plan.costs", ["0.01", "1e9", "1"], "no text"),
        ("plan.m", "300", "no whole number"),
        ("plan.costs", "1", "plan.costs"),
        ("plan.target", "moon", "target"),
        ("plan.bound", "clt", "cannot certify"),
        ("plan.rule", "lexicographic", "does not hold"),
        ("chains", [], "no chains"),
        ("chains.0", {"name": "x"}, "chain 0"),
        ("chains.0.policies.1.thresholds.0", [0.5], "no threshold"),
        ("chains.0.policies.1.thresholds.0", [0.5, 2**53], "outside"),
        ("chains.0.policies.1.thresholds.0", [-0.5, 0], "outside"),
        ("chains.0.policies.1.thresholds.0", [1.5, 0], "outside"),
        ("chains.0.policies.1.counts", [6, 1194], "no counts"),
        ("chains.0.policies.1.counts", [6.0, 0, 1194], "no whole number"),
        ("chains.0.policies.1.counts", [7, 0, 1194], "add up"),
        ("chains.0.policies.1.model_cost", "5", "no number"),
        ("draw", 5, "'draw'"),
        ("draw.entropy", "-1", "entropy"),
        ("draw.entropy", 7, "entropy"),
        ("version", 99, "version"),
        ("format", "x", "format"),
    ],
)
def test_a_malformed_certificate_is_named(files: Files, path: str, value: object, words: str) -> None:
    document = json.loads(files[0])
    edit(document, path, value)
    with pytest.raises(DocumentError, match=words):
        verify(canonical_bytes(document), files[1])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (b"", "empty"),
        (b"\xff\n", "UTF-8"),
        (b"nonsense\n", "line 1: no JSON"),
        (b"[1]\n", "no JSON object"),
        (b"{}\n", "lacks 'asked'"),
        (b'{"asked": 1, "label": null, "answers": [], "u": 0.5}\n', "neither true nor false"),
        (b'{"asked": true, "label": 3, "answers": [], "u": 0.5}\n', "neither text nor null"),
        (b'{"asked": true, "label": null, "answers": [3], "u": 0.5}\n', "list of texts"),
        (b'{"asked": true, "label": "\\ud800", "answers": [], "u": 0.5, "item_id": "a"}\n', "surrogates"),
        (b'{"asked": true, "label": null, "answers": [], "u": NaN}\n', "NaN"),
        (b'{"asked": true, "label": null, "answers": [], "u": "x"}\n', "'u' is no number"),
        (b"[" * 100_000 + b"\n", "line 1"),
    ],
)
def test_a_malformed_draw_is_named(files: Files, draw: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        verify(files[0], draw)


def test_the_command_line(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, draw = tmp_path / "certificate.json", tmp_path / "draw.jsonl"
    certificate.write_bytes(files[0])
    draw.write_bytes(files[1])
    assert main([str(certificate), str(draw)]) == 0
    assert "OK" in capsys.readouterr().out
    draw.write_bytes(b"".join(files[1].splitlines(keepends=True)[:-1]))
    assert main([str(certificate), str(draw)]) == 1
    out = capsys.readouterr().out
    assert f"it has {DRAWN - 1} rows" in out
    assert "DIFFERS" in out
    draw.write_bytes(b"")
    assert main([str(certificate), str(draw)]) == 2
    assert "the file is empty" in capsys.readouterr().err
    assert main([str(certificate), str(tmp_path / "nowhere")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_certificate_needs_the_entropy() -> None:
    plan = plan_of(1000, 1, p="1")
    with pytest.raises(ValueError, match="entropy"):
        certificate_document(plan, Calibration(()), None, provenance={})  # type: ignore[arg-type]
