"""Certificates of all versions, as other tests make and hold them: the verifier agrees with the core's."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hypac_verify.certificate import LOSSES as KNOWN, NO_BOUNDS
from hypac_verify.command import check
from hypac_verify.delivered_file import OTHERS, READABLE
from routing.core.bounds import BOUNDS
from routing.core.losses import LOSSES
from routing.core.verify import verify
from routing.delivery.formats import FORMATS
from testbed.forgeries import canonical
from tests.core.certificates import make_files
from tests.core.expert_runs import ExpertRun
from tests.core.test_every_score_certificate import CHEAP, DEAR, make_run
from tests.verify.reports import found_in

pytestmark = [pytest.mark.costly, pytest.mark.long]

DATA = Path(__file__).parents[1] / "core" / "data"
NO_LEDGER = "the ledger of alpha: the certificate holds none"
COSTS = "the expected costs and savings, which are as the certificate states them"
OLD_BOUND = "result.pointwise_upper_bound, which version 1 computed in another way"
NOT_ALL_HERE = {
    NO_LEDGER,
    "the data card: there is no README.md",
    "the delivered file: none that can be read is here",
}
MEASURED = {"loss": "measured_elsewhere", "loss_params": {"measure": "distance.py 2"}}
ORDINARY: list[dict[str, Any]] = [
    *(
        {"target": target, "certified": good}
        for target in ("dataset", "pool", "population")
        for good in (True, False)
    ),
    {"rule": "multi_chain"},
    {"data_set_size": 2000},
    *({"target": target, "bound": "betting_upper"} for target in ("dataset", "pool", "population")),
    {"bound": "betting_upper", "certified": False},
    {"bound": "betting_upper", "rule": "multi_chain", "data_set_size": 2000, "epsilon": "0.2"},
    *({"target": target, **MEASURED, "epsilon": "0.1"} for target in ("dataset", "pool", "population")),
    {**MEASURED, "certified": False},
    {**MEASURED, "data_set_size": 2000},
    {**MEASURED, "rule": "multi_chain", "epsilon": "0.2"},
]
SCORES: list[dict[str, Any]] = [
    {"costs": CHEAP},
    {"costs": DEAR},
    {"costs": ("0.01", "1")},
    {"costs": ("0.0004", "0.002", "0.01", "1")},
    {"costs": CHEAP, "target": "pool"},
    {"costs": DEAR, "target": "population", "blank": False},
    {"costs": CHEAP, "epsilon": "0.002"},
    {"costs": DEAR, "epsilon": "0.002"},
    {"costs": CHEAP, "bound": "betting_upper", "epsilon": "0.1"},
    {"costs": DEAR, "bound": "betting_upper", "target": "population", "epsilon": "0.15", "blank": False},
    {"costs": DEAR, "bound": "betting_upper", "target": "pool", "epsilon": "0.002"},
]
EXPERT: list[dict[str, Any]] = [
    {"share": "1"},
    {"share": "0.5"},
    {"share": "0.3", "epsilon": "0.15"},
    {"share": "1", "scored": True},
    {"share": "0.5", "scored": True},
    {"share": "0.5", "costs": ("0.01", "1")},
    {"share": "0.5", "epsilon": "0.004"},
    {"share": "0.5", "replaced": 3, "missing": 0.0, "ties": False},
    {"share": "0.5", "experts": (("Uma", "1/4"), ("Eve Örtlich", "3/4"))},
]


def agree(folder: Path, files: tuple[bytes, bytes], *, costs: bool = True) -> None:
    """All of it holds, and it is said where expected ``costs`` were not computed anew."""
    found = found_in(folder, {"certificate.json": files[0], "draw.jsonl": files[1]})
    told = [line for line in found.unchecked if line.startswith(COSTS)]
    assert (found.code, found.faults, bool(told)) == (3, "", not costs)
    assert {*found.unchecked} - {*told} - {OLD_BOUND} == NOT_ALL_HERE
    assert verify(*files) == []


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_certificates_of_earlier_versions_hold_as_far_as_they_went(version: int, tmp_path: Path) -> None:
    files = [
        (DATA / f"{name}-v{version}.{end}").read_bytes()
        for name, end in (("certificate", "json"), ("draw", "jsonl"))
    ]
    agree(tmp_path, (files[0], files[1]), costs=version > 1)
    found = found_in(tmp_path, {"certificate.json": files[0], "draw.jsonl": files[1]})
    unanswered = json.loads(files[0])["draw"]["unanswered"]
    assert (OLD_BOUND in found.unchecked) == (version == 1 and unanswered > 0)


def test_a_delivery_of_version_6_holds() -> None:
    report, checked, _ = check([DATA / "delivery-v6"])
    assert (report.faults, report.unchecked) == ([], [])
    assert checked.document["version"] == 6
    files = [(DATA / "delivery-v6" / name).read_bytes() for name in ("certificate.json", "draw.jsonl")]
    assert verify(*files) == []


@pytest.mark.parametrize("changes", ORDINARY, ids=str)
def test_version_3(changes: dict[str, Any], tmp_path: Path) -> None:
    agree(tmp_path, make_files(**changes))


@pytest.mark.parametrize("changes", SCORES, ids=str)
def test_version_4(changes: dict[str, Any], tmp_path: Path) -> None:
    agree(tmp_path, make_run(**changes).files())


@pytest.mark.parametrize("changes", EXPERT, ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_version_5(changes: dict[str, Any], seed: int, tmp_path: Path) -> None:
    agree(tmp_path, ExpertRun(**changes, seed=seed).files)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rule": "split_fixed_sequence"}, "learnt from labels"),
        ({"target": "pool", "bound": "hoeffding_bentkus"}, "none of those that are known"),
        ({"target": "pool", "p": "0.9", "p_min": "0.85"}, "no exact test"),
    ],
)
def test_what_has_no_exact_test_is_said_and_never_called_valid(
    changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    files = make_files(**changes)
    found = found_in(tmp_path, {"certificate.json": files[0], "draw.jsonl": files[1]})
    assert (found.code, found.faults) == (3, "")
    assert any(why in line and line.startswith("the tests") for line in found.unchecked)


@pytest.mark.parametrize(
    "params", [{"measure": "mine\nHOLDS: all was checked"}, {"measure": 5}, {"measure": "m" * 201}, {}]
)
def test_what_measured_the_losses_is_one_line(params: dict[str, Any], tmp_path: Path) -> None:
    certificate, draw = make_files(**MEASURED)
    document = json.loads(certificate)
    document["plan"]["loss_params"] = params
    found = found_in(tmp_path, {"certificate.json": canonical(document), "draw.jsonl": draw})
    assert found.code == 1
    assert "plan.loss_params: they are not those of measured losses" in found.faults


def test_chains_without_end_are_refused_before_they_are_tested(tmp_path: Path) -> None:
    certificate, draw = make_run(costs=CHEAP).files()
    document = json.loads(certificate)
    policies = next(chain for chain in document["chains"] if chain["shape"] == "own")["policies"]
    policies += [policies[-1]] * 100_000
    began = time.monotonic()
    found = found_in(tmp_path, {"certificate.json": canonical(document), "draw.jsonl": draw})
    assert (found.code, "more policies than the rule makes" in found.faults) == (1, True)
    assert time.monotonic() - began < 10


def test_every_loss_that_a_certificate_may_name_is_known() -> None:
    assert set(LOSSES.names()) == KNOWN


def test_of_bounds_that_are_not_known_the_tests_are_left_open() -> None:
    """One of a team's own may hold its level; what holds none is a fault."""
    assert {bound.name for bound in BOUNDS if not bound.certifies} == NO_BOUNDS


def test_every_file_of_a_format_is_read_or_said_to_be_none() -> None:
    assert {writer.file_name.rstrip("/") for writer in FORMATS.values()} == {*READABLE, *OTHERS}
