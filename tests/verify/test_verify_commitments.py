"""What is forged in a delivery whose run committed to it: refused, or shown by what a reader noted in time.

A careful forger puts every hash right, those of the commitments too (`testbed.forgeries.put_right`): then it
is the hash that somebody noted when it was shown that gives them away.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hypac_verify.command import main
from hypac_verify.commitments import QUICKNET
from routing.core.certificate import document_hash
from routing.core.sampling import draw_calibration
from routing.runs.cancel import cancel_run
from testbed.delivered import KINDS, delivered
from testbed.forgeries import canonical, forged, put_right, read
from testbed.worlds import make_world
from tests.conftest import Stored
from tests.verify.reports import Files, found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
CERTIFICATE = "certificate.json"
STRANGER = "a stranger's text"


def one_file(files: Files) -> Files:
    return put_right({name: data for name, data in files.items() if name != "labels.csv"})


@pytest.fixture(scope="module")
def several(stored: Stored) -> list[Files]:
    """Three runs on one pool: the second was cancelled once it was drawn, the others are delivered."""

    def make() -> list[Files]:
        world = make_world(300)
        first = delivered(world, world.complete(m=100))
        cancel_run(run=world.calibrating(m=60), user=world.manager)
        return [one_file(first), one_file(delivered(world, world.complete(m=60)))]

    return stored(make)


@pytest.fixture(scope="module")
def strangers(stored: Stored) -> Files:
    return one_file(stored(KINDS[STRANGER]))


def hashes(files: Files) -> tuple[str, str]:
    both = read(files, CERTIFICATE)["commitments"]
    return document_hash(both["before_draw"]), document_hash(both["before_labels"])


def stored_in(folder: Path, files: Files) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main(["--json", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


# --- What holds, and what is said of it ---------------------------------------------------------------------


def test_what_was_noted_is_confirmed_and_takes_it_off_what_is_on_trust(strangers, tmp_path, capsys) -> None:
    folder = stored_in(tmp_path / "a", strangers)
    code, said = told(capsys, folder)
    assert (code, said["faults"]) == (0, [])
    assert said["commitments"] == list(hashes(strangers))
    assert any("not confirmed" in note for note in said["notes"])
    assert any("'heads, said the stranger'" in note for note in said["notes"])
    first, second = hashes(strangers)
    heads = tmp_path / "heads"
    entry = read(strangers, CERTIFICATE)["ledger"][0]
    heads.write_text(f"1 {entry['sha256']}\n\n")
    confirmed = (folder, "--commitment", first, "--commitment", second, "--heads", heads)
    code, after = told(capsys, *confirmed)
    assert (code, after["faults"]) == (0, [])
    assert not any("not confirmed" in note or "--heads" in note for note in after["notes"])
    gone = set(said["on_trust"]) - set(after["on_trust"])
    assert len(gone) == 3
    assert any("there before the draw" in line for line in gone)


def test_a_hash_is_the_same_in_capital_letters(strangers, tmp_path, capsys) -> None:
    folder = stored_in(tmp_path / "a", strangers)
    heads = tmp_path / "heads"
    heads.write_text(f"1 {read(strangers, CERTIFICATE)['ledger'][0]['sha256'].upper()}\n")
    code, said = told(capsys, folder, "--commitment", hashes(strangers)[0].upper(), "--heads", heads)
    assert (code, said["faults"]) == (0, [])
    assert any("which you noted, is the one before the draw" in line for line in said["checked"])


@pytest.mark.parametrize("noted", ["0" * 64, "x", "A" * 63])
def test_another_hash_than_was_shown_is_no_confirmation(strangers, tmp_path, capsys, noted) -> None:
    folder = stored_in(tmp_path / "a", strangers)
    code = main([str(folder), "--commitment", noted])
    assert code == (1 if noted == "0" * 64 else 2)
    assert ("none of this certificate's" in capsys.readouterr().out) == (code == 1)


def test_the_level_that_is_left_is_printed(several, tmp_path, capsys) -> None:
    assert main([str(stored_in(tmp_path / "a", several[1]))]) == 0
    out = capsys.readouterr().out
    assert "After all draws on these items it may be wrong with probability 0.3" in out
    assert "with probability at least 70 %" in out


def test_deliveries_of_one_project_show_which_draw_has_no_certificate(several, tmp_path, capsys) -> None:
    folders = [stored_in(tmp_path / str(place), files) for place, files in enumerate(several)]
    code, said = told(capsys, *folders)
    assert (code, said["faults"]) == (0, [])
    assert said["notes"] == ["No certificate is here of these runs, which were drawn: 2."]
    assert [one["code"] for one in said["deliveries"]] == [0, 0]


def test_two_certificates_of_one_draw_are_two_too_many(several, tmp_path, capsys) -> None:
    other = forged(several[0], CERTIFICATE, lambda it: it["provenance"].update(currency="XXX"))
    folders = [stored_in(tmp_path / str(n), files) for n, files in enumerate((several[0], other))]
    code, said = told(capsys, *folders)
    assert (code, said["faults"]) == (1, ["there are two certificates of run 1, and a draw has one"])


def test_deliveries_of_two_projects_or_with_two_ledgers_do_not_go_together(
    several, strangers, tmp_path, capsys
) -> None:
    folders = [stored_in(tmp_path / str(n), files) for n, files in enumerate((several[0], strangers))]
    code, said = told(capsys, *folders)
    assert (code, "of two projects" in said["faults"][0]) == (1, True)

    def relinked(document: Any) -> None:
        document["ledger"][0] |= {"alpha": "0.01"}
        relink(document)

    cheaper = forged(several[1], CERTIFICATE, relinked)
    folders = [stored_in(tmp_path / f"b{n}", files) for n, files in enumerate((several[0], cheaper))]
    code, said = told(capsys, *folders)
    assert (code, "two different ledgers" in said["faults"][0]) == (1, True)


def test_a_folder_without_what_was_committed_to_says_that_it_was_not_checked(strangers, tmp_path) -> None:
    for gone in ("committed.jsonl", "pilot.jsonl"):
        files = {name: data for name, data in strangers.items() if name not in (gone, "manifest.json")}
        found = found_in(tmp_path / gone, files)
        assert found.code == 3
        assert any(gone in line for line in found.unchecked)


# --- Forgeries that nothing has to be noted for -------------------------------------------------------------

Change = Callable[[Any], object]


def relink(document: Any) -> None:
    """Every entry of the ledger, and the heads in the commitments, as they follow."""
    previous = ""
    for entry in document["ledger"]:
        entry["previous"] = previous
        entry.pop("sha256", None)
        previous = entry["sha256"] = document_hash(entry)
    first, second = document["commitments"].values()
    for one in (first, second):
        place = one["ledger"]["entries"]
        one["ledger"]["head"] = document["ledger"][place - 1]["sha256"] if place else ""
    second["before_draw"] = document_hash(first)


def dropped_run(document: Any) -> None:
    """The cancelled draw is taken out of the ledger, which is linked anew, and out of what was spent."""
    document["ledger"] = [entry for entry in document["ledger"] if entry["run"] != 2]
    for number, entry in enumerate(document["ledger"], start=1):
        entry["number"] = number
    for one in document["commitments"].values():
        one["ledger"]["entries"] -= 1
    relink(document)


def cheaper_entry(document: Any) -> None:
    document["ledger"][1]["alpha"] = "0.01"
    relink(document)


def unlinked(document: Any) -> None:
    document["ledger"][1]["previous"] = "0" * 64


def another_pool(document: Any) -> None:
    document["ledger"][-1]["pool"] = "0" * 64
    relink(document)


def full_level_again(document: Any) -> None:
    """The sentence and the plan forget what was spent."""
    result = document["result"]
    document["plan"]["alpha_spent"] = document["commitments"]["before_draw"]["plan"]["alpha_spent"] = "0"
    result["sentence"] = (
        result["sentence"].split(" Of this alpha")[0].replace("70 %", "90 %").replace("0.3)", "0.1)")
    )


def other_alpha(document: Any) -> None:
    document["plan"]["alpha"] = "0.2"


def other_m(document: Any) -> None:
    document["plan"]["m"] += 1


def moved_chain(document: Any) -> None:
    policy = document["chains"][0]["policies"][1]
    policy["thresholds"][0][0] += 1e-3


def other_commitment(document: Any) -> None:
    document["commitments"]["before_labels"]["before_draw"] = "0" * 64


def no_commitments(document: Any) -> None:
    """As a certificate of version 3, which made none."""
    document["version"] = 3
    del document["commitments"], document["ledger"]


def system_in_its_place(document: Any) -> None:
    document["commitments"]["before_labels"]["randomness"] = {"kind": "system", "value": None}


def other_text(document: Any) -> None:
    document["commitments"]["before_labels"]["randomness"]["value"] = "tails, said the stranger"


def beacon_in_its_place(document: Any) -> None:
    first, second = document["commitments"].values()
    first["draw_from"] = {"kind": "drand", "chain": "ab" * 32, "round": 1, "time": "2020-01-01T00:00:00Z"}
    second["randomness"] = {"kind": "drand", "value": "00" * 32}
    second["before_draw"] = document_hash(first)


def earlier_round(document: Any) -> None:
    beacon_in_its_place(document)
    first, second = document["commitments"].values()
    first["draw_from"]["chain"] = QUICKNET
    second["before_draw"] = document_hash(first)


REFUSED: list[tuple[str, Change]] = [
    *(
        ("several", change)
        for change in (dropped_run, cheaper_entry, unlinked, another_pool, full_level_again)
    ),
    *(("several", change) for change in (other_alpha, other_m, other_commitment, no_commitments)),
    *((STRANGER, change) for change in (system_in_its_place, other_text, beacon_in_its_place, earlier_round)),
]


@pytest.mark.parametrize(("kind", "change"), REFUSED, ids=[change.__name__ for _, change in REFUSED])
def test_a_forged_certificate_does_not_hold(kind, change, several, strangers, tmp_path) -> None:
    files = several[1] if kind == "several" else strangers
    edited = forged(files, CERTIFICATE, change)
    assert edited != files
    found = found_in(tmp_path, edited)
    assert (found.code, found.faults != "") == (1, True), found


def raised(files: Files) -> Files:
    """U of an asked error is raised after the draw, here and in what the run is said to have committed to."""
    rows = read(files, "draw.jsonl")
    wrong = next(row for row in rows if row["asked"] and row["answers"][0] != row["label"] and row["u"] < 0.9)
    wrong["u"] = 0.99
    committed = read(files, "committed.jsonl")
    next(row for row in committed if row["item_id"] == wrong["item_id"])["u"] = 0.99
    return files | {"draw.jsonl": lines(rows), "committed.jsonl": lines(committed)}


def answered_otherwise(files: Files) -> Files:
    """The first model is said to have been right about an asked item."""
    rows = read(files, "draw.jsonl")
    wrong = next(row for row in rows if row["asked"] and row["answers"][0] not in (None, row["label"]))
    wrong["answers"][0] = wrong["label"]
    return files | {"draw.jsonl": lines(rows)}


def marked_as_later(files: Files) -> Files:
    """A changed answer of a later model is said to have come after the second commitment."""
    rows = read(files, "draw.jsonl")
    row = next(row for row in rows if row["asked"])
    row["answers"][1], row["later"] = "changed", [2]
    return files | {"draw.jsonl": lines(rows)}


def first_model_later(files: Files) -> Files:
    rows = read(files, "draw.jsonl")
    next(row for row in rows if row["asked"])["later"] = [1]
    return files | {"draw.jsonl": lines(rows)}


def swapped(files: Files) -> Files:
    """Two items of the pool change places in what was committed to."""
    committed = read(files, "committed.jsonl")
    committed[3], committed[4] = committed[4], committed[3]
    return files | {"committed.jsonl": lines(committed)}


def other_pilot(files: Files) -> Files:
    """The pilot is made of items of the draw."""
    drawn = {row["item_id"] for row in read(files, "draw.jsonl")}
    committed = [row for row in read(files, "committed.jsonl") if row["item_id"] in drawn]
    return files | {"pilot.jsonl": lines(committed[:10])}


def drawn_anew(files: Files) -> Files:
    """The draw of another number, labels as the forger likes them."""
    document, rows = read(files, CERTIFICATE), read(files, "draw.jsonl")
    plan = document["plan"]
    again = draw_calibration(pool_size=plan["pool_size"], m=plan["m"], p=plan["p"], entropy=99)
    committed = read(files, "committed.jsonl")
    for row, position, asked in zip(rows, again.positions.tolist(), again.asked.tolist(), strict=True):
        row |= {"position": position, "asked": asked, "item_id": committed[position]["item_id"]}
        row |= {"label": "cat"} if asked else {"label": None, "answers": []}
    return files | {"draw.jsonl": lines(rows)}


def lines(rows: Any) -> bytes:
    return b"".join(canonical(row) for row in rows)


@pytest.mark.parametrize(
    "forge",
    [raised, answered_otherwise, marked_as_later, first_model_later, swapped, other_pilot, drawn_anew],
    ids=lambda forge: forge.__name__,
)
def test_forged_files_do_not_hold_though_their_commitments_say_the_same(
    forge: Callable[[Files], Files], strangers, tmp_path
) -> None:
    found = found_in(tmp_path, put_right(forge(deepcopy(strangers))))
    assert found.code in (1, 2), found


# --- Forgeries that only what was noted shows ---------------------------------------------------------------


def test_a_draw_made_again_until_it_looks_good_is_shown_by_the_first_hash(
    strangers, tmp_path, capsys
) -> None:
    """Everything is another run's, with commitments of its own: in itself it holds."""
    world = make_world(300)
    folder = stored_in(tmp_path / "a", one_file(delivered(world, world.complete(m=120))))
    assert main([str(folder)]) == 0
    capsys.readouterr()
    code, said = told(capsys, folder, "--commitment", hashes(strangers)[0])
    assert (code, len(said["faults"])) == (1, 1)


def test_a_ledger_begun_anew_is_shown_by_an_entry_that_was_noted(
    several, strangers, tmp_path, capsys
) -> None:
    heads = tmp_path / "heads"
    heads.write_text(f"1 {read(several[0], CERTIFICATE)['ledger'][0]['sha256']}\n")
    folder = stored_in(tmp_path / "a", strangers)
    code, said = told(capsys, folder, "--heads", heads)
    assert (code, "is not the one that you noted" in said["faults"][0]) == (1, True)
    for nothing in ("one two three\n", "\n"):
        heads.write_text(nothing)
        assert main([str(folder), "--heads", str(heads)]) == 2


def test_entries_that_were_noted_show_how_far_the_ledger_is_known(several, tmp_path, capsys) -> None:
    heads, document = tmp_path / "heads", read(several[1], CERTIFICATE)
    ledger, own = document["ledger"], document["commitments"]["before_labels"]["ledger"]["entries"]
    for files, noted, on_trust, words in (
        (several[0], ledger, False, "is not in this certificate"),  # no fault
        (several[1], ledger[: own - 1], True, "is left out cannot be checked"),
        (several[1], ledger[own - 1 : own], False, ""),
    ):
        heads.write_text("".join(f"{entry['number']} {entry['sha256']}\n" for entry in noted))
        code, said = told(capsys, stored_in(tmp_path / "a", files), "--heads", heads)
        assert (code, said["faults"]) == (0, [])
        assert any("names every earlier run" in line for line in said["on_trust"]) == on_trust
        assert any(words in note for note in said["notes"])


def test_the_number_of_the_draw_is_that_of_its_definition(strangers) -> None:
    first = hashes(strangers)[0]
    digest = hashlib.sha256(bytes.fromhex(first) + b"heads, said the stranger").digest()
    plan = read(strangers, CERTIFICATE)["plan"]
    drawn = draw_calibration(
        pool_size=plan["pool_size"], m=plan["m"], p=plan["p"], entropy=int.from_bytes(digest[:16], "big")
    )
    assert [row["position"] for row in read(strangers, "draw.jsonl")] == drawn.positions.tolist()
