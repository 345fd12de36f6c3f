"""Real deliveries hold, and what is forged in them is found."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypac_verify import final_audit
from hypac_verify.command import main
from testbed.delivered import KINDS
from testbed.forgeries import WITHOUT_MEANING, forged, put_right, random_edit, read, without_meaning
from tests.conftest import Stored
from tests.verify.reports import Files, found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

EDITS = 10
"""Of each kind: 200 in all; benchmarks/verify.py makes thousands."""
LEFT_OPEN: dict[str, tuple[str, ...]] = {
    "learnt": ("learnt from labels", "expected costs"),
    "another bound": ("none of those that are known", "expected costs"),
}
"""What cannot be checked of a kind."""
TESTED = [kind for kind in KINDS if kind not in ("learnt", "another bound")]


def one_file(files: Files) -> Files:
    """An edit of one file of labels would be found by the other."""
    return put_right({name: data for name, data in files.items() if name != "labels.csv"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_delivery_holds(kind: str, tmp_path: Path) -> None:
    files = KINDS[kind]()
    found = found_in(tmp_path / "files", files)
    wanted = LEFT_OPEN.get(kind, ())
    assert (found.faults, found.code) == ("", 3 if wanted else 0)
    assert len(found.unchecked) == len(wanted)
    assert all(any(words in line for line in found.unchecked) for words in wanted)
    assert ("is partial" in found.notes) == (kind == "partial")
    if kind in TESTED:
        _edited(kind, one_file(files), tmp_path / "edited")


def _edited(kind: str, files: Files, folder: Path) -> None:
    """Random edits, whose hashes are put right, are found, or lie in a field without meaning."""
    draws, usual, edits = random.Random(kind), found_in(folder, files), 0
    assert usual.faults == ""
    while edits < EDITS:
        if (edit := random_edit(files, draws)) is None:
            continue
        edits += 1
        field, what, changed = edit
        found = found_in(folder, changed)
        said = found.code == 3 and found.unchecked != usual.unchecked
        assert found.code in (1, 2) or said or without_meaning(field, files, changed), f"{field}: {what}"
        assert "which nobody thought of" not in found.faults


def full_alpha(document: Any) -> None:
    """One chain of three at the full level."""
    document["chains"][1]["level"] = f"{1}/{10}"


def enlarged_share(document: Any) -> None:
    document["chains"][1]["share"] = "9/10"


def missing_chain(document: Any) -> None:
    del document["chains"][1]


def moved_thresholds(document: Any) -> None:
    limits = document["chains"][0]["policies"][-1]["thresholds"]
    document["result"]["thresholds"] = limits


def more_epsilon_in_the_sentence(document: Any) -> None:
    said = document["result"]["sentence"]
    document["result"]["sentence"] = said.replace("At most 10 %", "At most 1 %")


def another_count(document: Any) -> None:
    document["chains"][0]["policies"][3]["observed"] += 1


def looser_limit(document: Any) -> None:
    limits = document["chains"][0]["limits"]
    limits[sorted(limits)[0]] += 1


def emptied_ledger(document: Any) -> None:
    document["provenance"]["alpha_ledger"] = []


def cheaper_ledger(document: Any) -> None:
    document["provenance"]["alpha_ledger"][0]["alpha"] = "0.01"


def flipped_label(rows: Any) -> None:
    row = next(row for row in rows if row["asked"] and row["label"] is not None)
    row["label"] = next(choice for choice in ("cat", "dog", "emu") if choice != row["label"])


def unasked(rows: Any) -> None:
    row = next(row for row in rows if row["asked"])
    row["asked"], row["label"] = False, None


def twice(rows: Any) -> None:
    rows.insert(5, rows[2])


def missing_row(rows: Any) -> None:
    del rows[7]


def another_route(rows: Any) -> None:
    row = next(row for row in rows if row["source"] == "Model 1")
    row["source"] = "Model 2"


def a_model_in_place_of_a_person(rows: Any) -> None:
    row = next(row for row in rows if row["source"] == "person" and not row["asked"])
    row["source"], row["annotator"] = "Model 1", None


def delivered_label_of_an_asked_item(rows: Any) -> None:
    flipped_label(rows)


def _unseen(rows: Any) -> Any:
    """Asked items whose label the draw does not hold: all agreed, and the expert did not see them."""
    return [row for row in rows if row["asked"] and row["source"] == "person"]


def another_label_of_an_unseen_item(rows: Any) -> None:
    row = _unseen(rows)[0]
    row["label"] = next(choice for choice in ("cat", "dog", "emu") if choice != row["label"])


def models_answer_of_unseen_items(rows: Any) -> None:
    for row in _unseen(rows):
        row |= {"source": "Model 1", "annotator": None, "label": "another"}


def expert_in_a_models_place(rows: Any) -> None:
    for row in _unseen(rows):
        row["source"] = "expert"


Forgery = Callable[[Any], object]
CERTIFICATE: list[tuple[str, Forgery]] = [
    ("several chains", full_alpha),
    ("every score", enlarged_share),
    ("every score", missing_chain),
    ("every score", full_alpha),
    ("several chains", missing_chain),
    ("several chains", moved_thresholds),
    ("several chains", more_epsilon_in_the_sentence),
    ("several chains", another_count),
    ("several chains", looser_limit),
    ("several chains", emptied_ledger),
    ("several chains", cheaper_ledger),
    ("expert, r = .5", full_alpha),
    ("expert, r = .5", missing_chain),
    ("expert, r = .5", another_count),
    ("expert, r = .5", looser_limit),
]
FORGERIES: list[tuple[str, str, Forgery]] = [
    *((kind, "certificate.json", change) for kind, change in CERTIFICATE),
    *(("several chains", "draw.jsonl", change) for change in (flipped_label, unasked, twice, missing_row)),
    ("expert, r = .5", "draw.jsonl", flipped_label),
    *(
        ("several chains", "labels.jsonl", change)
        for change in (
            twice,
            missing_row,
            another_route,
            a_model_in_place_of_a_person,
            delivered_label_of_an_asked_item,
        )
    ),
]


@pytest.fixture(scope="module")
def forgeable(stored: Stored) -> dict[str, Files]:
    return {
        kind: one_file(stored(KINDS[kind])) for kind in ("several chains", "every score", "expert, r = .5")
    }


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (another_label_of_an_unseen_item, "it does not carry its annotator's label"),
        (models_answer_of_unseen_items, "it does not carry the model's answer that the draw has"),
        (expert_in_a_models_place, "the thresholds send it to another source"),
    ],
)
def test_asked_items_that_the_expert_did_not_see_follow_draw_and_thresholds(
    change: Forgery, fault: str, forgeable: dict[str, Files], tmp_path: Path
) -> None:
    edited = forged(forgeable["expert, r = .5"], "labels.jsonl", change)
    assert fault in found_in(tmp_path, edited).faults


def test_a_final_audit_is_not_drawn_anew_before_its_rows_are_counted(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = one_file(stored(KINDS["final audit"]))

    def drop(audit: Any) -> None:
        del audit["rows"][3]

    monkeypatch.setattr(final_audit, "drawn", None)
    found = found_in(tmp_path, forged(files, "final_audit.json", drop))
    assert (found.code, "final_audit.json: it has" in found.faults) == (1, True)


@pytest.mark.parametrize(
    ("kind", "name", "change"), FORGERIES, ids=[f"{kind}-{change.__name__}" for kind, _, change in FORGERIES]
)
def test_a_careful_forgery_does_not_hold(
    kind: str, name: str, change: Forgery, forgeable: dict[str, Files], tmp_path: Path
) -> None:
    files = forgeable[kind]
    edited = forged(files, name, lambda node: change(node))
    assert edited != files
    found = found_in(tmp_path, edited)
    assert found.code in (1, 2), found
    assert "manifest" not in found.faults


def test_a_file_that_is_not_the_manifests_does_not_hold(forgeable: dict[str, Files], tmp_path: Path) -> None:
    files = forgeable["several chains"]
    found = found_in(tmp_path, files | {"README.md": files["README.md"] + b"\n"})
    assert (found.code, "README.md" in found.faults) == (1, True)
    hashes = json.loads(files["manifest.json"])
    hashes["files"]["draw.jsonl"]["sha256"] = "0" * 64
    assert found_in(tmp_path, files | {"manifest.json": json.dumps(hashes).encode()}).code == 1
    hashes["files"]["../draw.jsonl"] = hashes["files"].pop("draw.jsonl")
    assert found_in(tmp_path, files | {"manifest.json": json.dumps(hashes).encode()}).code == 2


def test_deliveries_made_before_there_were_manifests_are_said_to_have_none(
    forgeable: dict[str, Files], tmp_path: Path
) -> None:
    files = {name: data for name, data in forgeable["several chains"].items() if name != "manifest.json"}
    found = found_in(tmp_path, files)
    assert (found.code, "There is no manifest.json" in found.notes) == (0, True)


def test_a_run_that_is_marked_invalid_does_not_hold(forgeable: dict[str, Files], tmp_path: Path) -> None:
    files = dict(forgeable["several chains"])
    words = b"**This run is marked invalid; its certificate no longer holds:**\n\n- `why`\n\n"
    files["README.md"] = words + files["README.md"]
    found = found_in(tmp_path, put_right(files))
    assert (found.code, "marked invalid" in found.faults) == (1, True)


def _label_of(rows: Any, *, asked: bool) -> None:
    next(row for row in rows if row["asked"] is asked and row["source"])["label"] += "7"


def _other_answer(rows: Any) -> None:
    row = next(row for row in rows if row["asked"] and row["answers"][0] == row["label"] and row["u"] < 0.2)
    row["answers"][0] += "7"


def test_the_list_of_fields_without_meaning_names_fields_that_there_are(
    forgeable: dict[str, Files], tmp_path: Path
) -> None:
    assert without_meaning("labels.jsonl: [].text")
    assert not without_meaning("certificate.json: provenance.alpha_ledger[].alpha")
    files = forgeable["several chains"]
    for asked in (True, False):
        flipped = forged(files, "labels.jsonl", lambda rows, asked=asked: _label_of(rows, asked=asked))
        assert bool(without_meaning("labels.jsonl: [].label", files, flipped)) == (not asked)
    answered = forged(files, "draw.jsonl", _other_answer)
    assert not without_meaning("draw.jsonl: [].answers[]", files, answered)
    assert found_in(tmp_path, answered).code == 1
    assert not without_meaning("certificate.json: plan.costs[]", files, files)
    assert all(
        field.partition(": ")[0] in {*forgeable["every score"], "final_audit.json"}
        for field in WITHOUT_MEANING
    )
    assert read(forgeable["every score"], "labels.jsonl")


def test_of_the_pilot_it_says_how_many_it_counts(stored: Stored, tmp_path, capsys) -> None:
    """Costs rest on those of the pilot that nobody was asked about."""
    files = stored(KINDS["every score"])
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    main([str(tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    (line,) = [line for line in said["checked"] if "items of the pilot" in line]
    assert "of 60 items of the pilot that people were not asked about" in line
