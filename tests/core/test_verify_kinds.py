"""Certificates of every rule, loss and way of asking can be recomputed; old ones as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.core.certificate import canonical_bytes
from routing.core.documents import DocumentError
from routing.core.verify import main, verify
from tests.core.certificates import Files, make_files

pytestmark = pytest.mark.costly

DATA = Path(__file__).parent / "data"
OWN = "tests.core.own_losses:apart"
SAID_IN_VERSION_2: dict[str, dict[str, Any]] = json.loads((DATA / "sentences-v2.json").read_text("utf-8"))
"""Of several plans what the program of that version said of them."""

KINDS: dict[str, dict[str, Any]] = {
    "several chains": {"rule": "multi_chain", "target": "pool"},
    "learnt, dataset": {"rule": "split_fixed_sequence"},
    "learnt, pool": {"rule": "split_fixed_sequence", "target": "pool"},
    "learnt, population": {"rule": "split_fixed_sequence", "target": "population", "split_share": "0.25"},
    "learnt, betting": {"rule": "split_fixed_sequence", "bound": "betting_upper"},
    "betting": {"bound": "betting_upper", "target": "population"},
    "hoeffding": {"bound": "hoeffding", "epsilon": "0.15"},
    "varying p, dataset": {"p_min": "0.85", "epsilon": "0.15"},
    "varying p, population": {"p_min": "0.85", "target": "population", "epsilon": "0.1"},
    "second draw": {"data_set_size": 2000},
    "bounded loss": {"loss": OWN, "epsilon": "0.2"},
    "loss with parameters": {"loss": "numeric", "loss_params": {"absolute": "0.5"}},
}


def files_of(kind: str) -> Files:
    return make_files(**{"target": "dataset", **KINDS[kind]})


@pytest.mark.parametrize("kind", KINDS)
def test_it_follows_from_its_draw(kind: str) -> None:
    files = files_of(kind)
    assert verify(*files, allowed_imports=[OWN]) == []
    document = json.loads(files[0])
    assert canonical_bytes(document) == files[0]
    for name in ("p_min", "data_set_size", "loss_params"):
        assert (name in document["plan"]) == (name in KINDS[kind])


def test_what_only_some_plans_have_is_left_out_of_the_others() -> None:
    plan = json.loads(files_of("several chains")[0])["plan"]
    assert sorted(plan) == sorted(
        ["epsilon", "alpha", "target", "m", "p", "pool_size", "costs", "bound", "rule", "loss", "pilot_size"]
    )


def test_another_label_among_the_first_teaches_another_chain() -> None:
    certificate, draw = files_of("learnt, pool")
    rows = [json.loads(line) for line in draw.splitlines()]
    taught = json.loads(certificate)["chains"][0]["taught_by"]
    first = [row for row in rows if row["asked"]][:taught]
    for row in first[: taught // 2]:
        row["label"] = "another"
    changed = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found = verify(certificate, changed)
    assert any("thresholds" in line for line in found)
    assert any("observed_first" in line for line in found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rho": [0.5] * 199 + [0.1]}, "thresholds"),
        ({"sizes": [1] * 200}, "counts"),
    ],
)
def test_other_slices_teach_another_chain(change: dict[str, Any], words: str) -> None:
    certificate, draw = files_of("learnt, dataset")
    document = json.loads(certificate)
    document["slices"] |= change
    assert any(words in line for line in verify(canonical_bytes(document), draw))


@pytest.mark.parametrize(
    "change",
    [{"ends": []}, {"ends": [None] * 200}, {"sizes": [0] * 200}, {"sizes": ["1"] * 200}, {"rho": [0.5]}],
)
def test_slices_that_are_none_are_named(change: dict[str, Any]) -> None:
    certificate, draw = files_of("learnt, dataset")
    document = json.loads(certificate)
    document["slices"] |= change
    with pytest.raises(DocumentError, match="slices"):
        verify(canonical_bytes(document), draw)


def test_slices_stand_beside_a_rule_that_learns() -> None:
    certificate, draw = files_of("learnt, dataset")
    document = json.loads(certificate)
    slices = document.pop("slices")
    assert any("pass the slices" in line for line in verify(canonical_bytes(document), draw))
    other, draw = files_of("several chains")
    document = json.loads(other) | {"slices": slices}
    assert any("takes no slices" in line for line in verify(canonical_bytes(document), draw))


@pytest.mark.parametrize(
    ("p", "words"),
    [("0.8499", "outside the plan's"), ("0.999", "draw.sha256")],
)
def test_another_probability_of_asking_is_found(p: str, words: str) -> None:
    certificate, draw = files_of("varying p, dataset")
    rows = [json.loads(line) for line in draw.splitlines()]
    next(row for row in rows if row["asked"])["p"] = p
    changed = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert any(words in line for line in verify(certificate, changed))


def test_asking_must_follow_from_the_probability_of_the_item() -> None:
    certificate, draw = files_of("varying p, dataset")
    rows = [json.loads(line) for line in draw.splitlines()]
    for row in rows:
        row["p"] = "1"
    changed = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert any("but the entropy gives True" in line for line in verify(certificate, changed))


def test_code_that_a_certificate_names_runs_only_where_it_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = files_of("bounded loss")
    with pytest.raises(DocumentError, match=f"--allow-loss {OWN}"):
        verify(*files)
    certificate, draw = tmp_path / "certificate.json", tmp_path / "draw.jsonl"
    certificate.write_bytes(files[0])
    draw.write_bytes(files[1])
    assert main([str(certificate), str(draw)]) == 2
    assert f"--allow-loss {OWN}" in capsys.readouterr().err
    assert main([str(certificate), str(draw), "--allow-loss", "somewhere:else"]) == 2
    assert main([str(certificate), str(draw), "--allow-loss", OWN]) == 0


def test_a_certificate_of_the_first_version_still_holds() -> None:
    certificate, draw = ((DATA / name).read_bytes() for name in ("certificate-v1.json", "draw-v1.jsonl"))
    document = json.loads(certificate)
    assert document["version"] == 1
    assert verify(certificate, draw) == []
    assert canonical_bytes(document) == certificate
    document["result"]["allowed_errors"] += 1
    assert verify(canonical_bytes(document), draw)


def test_a_certificate_of_the_second_version_still_holds() -> None:
    """It did not say what counts as right, and it is not asked to."""
    certificate, draw = ((DATA / name).read_bytes() for name in ("certificate-v2.json", "draw-v2.jsonl"))
    document = json.loads(certificate)
    assert document["version"] == 2
    assert "are wrong (epsilon" in document["result"]["sentence"]
    assert verify(certificate, draw) == []
    assert any("result.sentence" in line for line in verify(canonical_bytes(document | {"version": 3}), draw))


@pytest.mark.parametrize("kind", SAID_IN_VERSION_2)
def test_every_promise_that_version_2_made_is_known_again(kind: str) -> None:
    certificate, draw = make_files(**{"target": "dataset", **SAID_IN_VERSION_2[kind]["plan"]})
    document = json.loads(certificate)
    assert "People's own mistakes are not counted." in document["result"]["sentence"]
    document["version"], document["result"]["sentence"] = 2, SAID_IN_VERSION_2[kind]["sentence"]
    assert verify(canonical_bytes(document), draw, allowed_imports=[OWN]) == []


def test_a_certificate_of_the_first_version_is_held_to_all_but_its_forecast_of_costs() -> None:
    certificate, draw = ((DATA / name).read_bytes() for name in ("certificate-v1.json", "draw-v1.jsonl"))
    document = json.loads(certificate)
    document["result"]["expected_net_saving"] = -1.0
    assert verify(canonical_bytes(document), draw) == []
    document["result"]["sentence"] += " And more."
    assert any("sentence" in line for line in verify(canonical_bytes(document), draw))


def test_the_command_says_what_the_first_version_leaves_unchecked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DATA / "certificate-v1.json"), str(DATA / "draw-v1.jsonl")]) == 0
    assert "its expected costs and savings were not checked" in capsys.readouterr().out
