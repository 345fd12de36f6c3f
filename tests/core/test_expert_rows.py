"""Rows of a run with an expert, from columns to lines that anybody checks; and two people with a decider."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing.core import (
    CalibrationError,
    Roster,
    annotated_rows,
    certificate_document,
    certificate_files,
    certify_with_expert,
    draw_calibration,
    expert_certificate,
    expert_queue,
    settled_certificate,
    with_expert,
)
from routing.core.certificate import canonical_bytes
from routing.core.certify import certify
from routing.core.documents import DocumentError
from routing.core.verify import main, verify
from testbed.settings import plan_of
from tests.core.certificates import ENTROPY, make_run
from tests.core.expert_runs import ExpertRun
from tests.core.test_every_score_certificate import make_run as make_score_run

pytestmark = pytest.mark.costly


@pytest.fixture(scope="module")
def half() -> ExpertRun:
    return ExpertRun("0.5", seed=2)


# --- forged draws ---


def with_row(draw: bytes, which: Callable[[dict[str, Any]], bool], **changes: object) -> bytes:
    rows = [json.loads(line) for line in draw.splitlines()]
    row = next(row for row in rows if which(row))
    row.update(changes)
    for name in [name for name, value in row.items() if value is ...]:
        del row[name]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def is_asked(row: dict[str, Any]) -> bool:
    return bool(row["asked"])


def unseen(row: dict[str, Any]) -> bool:
    """Unanimous, and after the recheck set."""
    said = {row.get("person"), *row["answers"]}
    return is_asked(row) and row["order"] > 200 and len(said) == 1 and None not in said


@pytest.mark.parametrize(
    ("which", "changes", "told"),
    [
        (is_asked, {"person": "x" * 9}, "draw.sha256"),
        (is_asked, {"answers": [None, None]}, "draw.sha256"),
        (is_asked, {"label": "other"}, "chains[0].policies"),
        (unseen, {"label": "y"}, "was not to label it"),
        (is_asked, {"annotator": "Nobody"}, "not 'Nobody''s"),
        (is_asked, {"own": [[0.5, 3]]}, "no chain looks at them"),
        (is_asked, {"called": [True, True]}, "all are, where asked"),
        (is_asked, {"annotator": ..., "person": ...}, "does not say whose it is"),
        (lambda row: not row["asked"], {"annotator": "Ada", "person": None}, "nobody was asked"),
        (is_asked, {"person": ...}, "lacks 'person'"),
        (is_asked, {"annotator": ""}, "no name"),
        (is_asked, {"annotator": 3}, "no name"),
        (is_asked, {"person": 3}, "neither text nor null"),
        (is_asked, {"person": "\ud800"}, "surrogates"),
    ],
)
def test_a_change_of_the_draw_is_told(
    half: ExpertRun, which: Callable[[dict[str, Any]], bool], changes: dict[str, Any], told: str
) -> None:
    draw = with_row(half.files[1], which, **changes)
    try:
        lines = verify(half.files[0], draw)
    except DocumentError as error:
        lines = [str(error)]
    assert any(told in line for line in lines), lines[:5]


def test_an_experts_label_that_is_left_out_shows_in_the_counts(half: ExpertRun) -> None:
    """Also where the hash is changed with it: an item that she could not label is an error for others."""
    rows = [json.loads(line) for line in half.files[1].splitlines()]
    low = min(
        (row for row in rows if row["asked"] and row["label"] and not unseen(row)), key=lambda r: r["u"]
    )
    draw = with_row(half.files[1], lambda row: row["order"] == low["order"], label=None)
    lines = verify(half.files[0], draw)
    assert any("result.unlabelled" in line for line in lines)
    assert any(".unlike is" in line or ".alike is" in line for line in lines)


def test_rows_with_annotators_belong_to_no_other_certificate() -> None:
    chains, _, calibration = make_run(plan_of(1200, 300))
    plan = plan_of(1200, 300)
    document = certificate_document(
        plan, calibration, certify(plan, chains, calibration), provenance={"entropy": ENTROPY}
    )
    certificate, draw = certificate_files(document, calibration)
    with pytest.raises(DocumentError, match="no expert is the reference"):
        verify(certificate, with_row(draw, is_asked, annotator="Ada", person="0"))


def test_the_command_line(half: ExpertRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, draw = tmp_path / "certificate.json", tmp_path / "draw.jsonl"
    certificate.write_bytes(half.files[0])
    draw.write_bytes(half.files[1])
    assert main([str(certificate), str(draw)]) == 0
    assert "OK" in capsys.readouterr().out
    certificate.write_bytes(half.files[0].replace(b'"weight":3', b'"weight":4'))
    assert main([str(certificate), str(draw)]) == 1
    assert "DIFFERS" in capsys.readouterr().out
    certificate.write_bytes(half.files[0].replace(b'"kind":"expert"', b'"kind":"oracle"'))
    assert main([str(certificate), str(draw)]) == 2
    assert "'oracle' is unknown" in capsys.readouterr().err


# --- what is refused before there is a certificate ---


def test_the_expert_labels_what_she_was_to_and_nothing_else(half: ExpertRun) -> None:
    queue = expert_queue(half.run, half.calibration, half.roster)
    order = {row.item_id: row.order for row in half.calibration.rows}
    assert len(queue) == half.found.seen < half.found.asked
    assert [order[item] for item in queue] != sorted(order[item] for item in queue), "shuffled"
    with pytest.raises(CalibrationError, match="she could not"):
        with_expert(half.run, half.calibration, dict.fromkeys(queue[1:], "y"))
    every = with_expert(half.run, half.calibration, dict.fromkeys(half.items, "y"))
    assert {row.item_id for row in every.rows if row.label} == set(queue)


def test_columns_and_rosters_that_do_not_fit_are_refused(half: ExpertRun) -> None:
    u, answers, people, _ = half.said
    plan = half.run.plan
    draw = draw_calibration(pool_size=600, m=plan.m, p=plan.p, entropy=half.entropy)
    columns: dict[str, Any] = {"items": half.items, "u": u[:, 0], "v": half.v, "answers": answers.tolist()}
    with pytest.raises(CalibrationError, match="it has no label"):
        annotated_rows(half.run, draw, half.roster, people={}, **columns)
    said = dict(zip(half.items, people, strict=True))
    with pytest.raises(CalibrationError, match=r"shape \(600, 2\), expected \(600, 1\)"):
        annotated_rows(half.run, draw, half.roster, people=said, own=half.own, **columns)
    found = certify_with_expert(half.run, half.chains, half.calibration)
    for roster, words in (
        (Roster.even("0" * 32, ["Ada"]), "not that of the draw"),
        (Roster.even(half.roster.salt, ["Ada", "Eve Örtlich"]), "annotates"),
        (Roster.even(half.roster.salt, ["Ada"]), "by the roster"),
        (Roster.of(half.roster.salt, {"Ada": "1"}, duty="expert"), "roster of experts"),
        (Roster.even(half.roster.salt, [f"n{k}" for k in range(1001)]), "at most 1000"),
    ):
        with pytest.raises(ValueError, match=words):
            expert_certificate(
                half.run, half.chains, half.calibration, found,
                roster=roster, provenance={"entropy": half.entropy},
            )  # fmt: skip


# --- two people and a decider ---


@pytest.mark.parametrize("certified", [True, False])
def test_a_certificate_of_settled_labels_says_who_is_right(certified: bool) -> None:
    plan = plan_of(1200, 300, epsilon="0.05" if certified else "0.004")
    chains, _, calibration = make_run(plan)
    found = certify(plan, chains, calibration)
    before = certificate_document(plan, calibration, found, provenance={"entropy": ENTROPY})
    document = settled_certificate(plan, found, before)
    assert document["reference"] == {"kind": "settled"}
    assert ("two of our people" in document["result"]["sentence"]) is certified
    assert "a person gave" not in document["result"]["sentence"]
    assert "Nobody could label 1 item" in document["result"]["sentence"]
    certificate, draw = certificate_files(document, calibration)
    assert verify(certificate, draw) == []
    forged = canonical_bytes({**document, "version": 3})
    assert any("reference" in line for line in verify(forged, draw))
    document["result"]["sentence"] = before["result"]["sentence"] + " Truly."
    assert any("sentence" in line for line in verify(canonical_bytes(document), draw))


def test_settled_labels_may_have_been_routed_by_every_score() -> None:
    run = make_score_run()
    found, (certificate, draw) = run.certify(), run.files()
    document = settled_certificate(run.plan, found, json.loads(certificate))
    sentence = document["result"]["sentence"]
    assert "two of our people" in sentence
    assert sentence.endswith(
        json.loads(certificate)["result"]["sentence"].split("blank where people should.")[1]
    )
    assert verify(canonical_bytes(document), draw) == []
    document["version"] = 4
    assert any("reference" in line for line in verify(canonical_bytes(document), draw))


def test_settled_labels_promise_one_delivered_data_set() -> None:
    plan = plan_of(1200, 300, target="pool")
    chains, _, calibration = make_run(plan)
    found = certify(plan, chains, calibration)
    document = certificate_document(plan, calibration, found, provenance={"entropy": ENTROPY})
    with pytest.raises(ValueError, match="one delivered data set"):
        settled_certificate(plan, found, document)
