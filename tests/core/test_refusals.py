"""What is refused, and that the message says what and where: chains, draws, files."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routing.core.certificate import canonical_bytes, certificate_document
from routing.core.certify import certify, certify_losses
from routing.core.chain import Chain
from routing.core.documents import DocumentError
from routing.core.keys import Key, Thresholds
from routing.core.losses import math_worker
from routing.core.sampling import draw_pilot
from routing.core.verify import main, verify
from tests.core.certificates import ENTROPY, Files, make_files, make_run
from tests.core.test_verify import edit
from tests.core.worlds import make_world, plan_of, policies

ROOT = Path(__file__).resolve().parents[2]
LOW, HIGH = Key(0.2, 0), Key(0.7, 0)
PEOPLE: Thresholds = (None, None)


@pytest.fixture(scope="module")
def files() -> Files:
    return make_files()


def one_chain(*thresholds: Thresholds, name: str = "x") -> Chain:
    return Chain(name, policies([*thresholds], name=name).policies[1:])


@pytest.mark.parametrize(
    ("chains", "words"),
    [
        ([], "no chain to test; build the chains first"),
        ([one_chain(PEOPLE), one_chain(PEOPLE)], "two chains have the same name"),
        ([Chain("x", ())], "chain 'x': it has no policy; it must start with people alone"),
        ([one_chain(PEOPLE, (HIGH, LOW))], "policy 1 fall from one source to the next"),
        ([one_chain(PEOPLE, (HIGH, None))], "policy 1 fall from one source to the next"),
        ([one_chain((LOW, HIGH), PEOPLE)], "must start with people alone, where nothing goes to a model"),
        ([one_chain((None,), (LOW,))], "policy 0 has 1 thresholds for 3 sources"),
    ],
)
def test_chains_that_cannot_be_tested(chains: list[Chain], words: str) -> None:
    world = make_world("power", 100, np.random.default_rng(0))
    seen = world.observe(np.arange(40), 40)
    with pytest.raises(ValueError) as refused:
        certify_losses(plan_of(100, 40, p=1), chains, seen)
    assert words in str(refused.value)


def test_the_safest_step_that_failed_is_told_of_every_chain_that_has_one() -> None:
    world = make_world("power", 400, np.random.default_rng(0))
    seen = world.observe(np.arange(200), 200)
    everything = one_chain(PEOPLE, (Key(1.0, 0), Key(1.0, 0)), name="all at once")
    nothing = one_chain(PEOPLE, name="nothing to gain")
    result = certify_losses(plan_of(400, 200, p=1, rule="multi_chain"), [nothing, everything], seen)
    assert not result.certified
    assert "the safest step of the chain 'all at once' already showed" in result.reason
    assert "nothing to gain" not in result.reason


@pytest.mark.parametrize(
    ("provenance", "words"), [({}, "needs the run's 'entropy'"), ({"entropy": "x"}, "'x'")]
)
def test_a_certificate_says_where_its_draw_came_from(provenance: dict[str, Any], words: str) -> None:
    plan = plan_of(1200, 300)
    chains, _, calibration = make_run(plan)
    outcome = certify(plan, chains, calibration)
    with pytest.raises(ValueError, match=words):
        certificate_document(plan, calibration, outcome, provenance=provenance)
    whole = certificate_document(plan, calibration, outcome, provenance={"entropy": ENTROPY})
    assert whole["draw"]["entropy"] == str(ENTROPY)


@pytest.mark.parametrize(("size", "pool"), [(-1, 10), (1, -1), (11, 10)])
def test_a_pilot_that_cannot_be_drawn(size: int, pool: int) -> None:
    with pytest.raises(ValueError, match="pilot"):
        draw_pilot(pool_size=pool, size=size, entropy=1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "no JSON in UTF-8"),
        (b"{", "no JSON in UTF-8"),
        (b'{"format": NaN}', "NaN is no JSON number"),
        (b"[1]", "no JSON object"),
        (b'{"format": "hypac-certificate", "version": true}', "version True is unknown here"),
    ],
)
def test_a_file_that_is_no_certificate(files: Files, data: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        verify(data, files[1])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("chains.0.policies.1.thresholds.0", ["0.5", 3], "no threshold; expected null or"),
        ("chains.0.policies.1.thresholds.0", [0.5, True], "no threshold; expected null or"),
        ("plan.p_min", "x", "plan: 'x' is no text of a decimal number"),
        ("plan.loss_params", 3, "loss_params"),
    ],
)
def test_a_certificate_with_a_wrong_value(files: Files, path: str, value: object, words: str) -> None:
    document = json.loads(files[0])
    edit(document, path, value)
    with pytest.raises(DocumentError, match=words):
        verify(canonical_bytes(document), files[1])


def test_a_plan_without_a_part_is_named(files: Files) -> None:
    document = json.loads(files[0])
    del document["plan"]["epsilon"]
    with pytest.raises(DocumentError, match="the plan lacks 'epsilon'"):
        verify(canonical_bytes(document), files[1])


def test_what_is_missing_and_what_is_too_much_in_a_certificate(files: Files) -> None:
    document = json.loads(files[0])
    del document["result"]["sentence"]
    document["result"]["seal"] = "gold"
    found = verify(canonical_bytes(document), files[1])
    assert len(found) == 2
    assert any(line.startswith("certificate: result.sentence is missing, recomputed ") for line in found)
    assert "certificate: result.seal is not part of a certificate" in found


@pytest.mark.parametrize("version", [1, 2])
def test_a_result_that_is_no_object_differs_in_every_version(files: Files, version: int) -> None:
    document = json.loads(files[0])
    document["version"], document["result"] = version, "certified"
    assert any(line.startswith("certificate: result") for line in verify(canonical_bytes(document), files[1]))


def test_many_differences_are_counted_not_listed(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = files[1].decode().splitlines()
    rows = [{**json.loads(line), "v": 0} for line in lines]
    (tmp_path / "certificate.json").write_bytes(files[0])
    (tmp_path / "draw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 52
    assert out[-2].startswith("... and ")
    assert out[-2].endswith(" more")


def test_the_experiment_is_a_module_that_can_be_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "routing.core.experiment", "no such table.csv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no such table.csv" in done.stderr


@pytest.mark.parametrize("limited", [True, False])
def test_the_helper_for_formulas_limits_its_memory_where_the_system_can(
    limited: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource")
    asked: list[object] = []

    def set_limit(*arguments: object) -> None:
        asked.append(arguments)
        if not limited:
            raise ValueError("not permitted")

    monkeypatch.setattr(resource, "setrlimit", set_limit)  # not for the process that tests
    monkeypatch.setattr(logging, "disable", lambda level: None)
    request = {"label": "2", "prediction": "4/2", "decimals": 6, "strict": True}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request) + "\n"))
    math_worker.main()
    assert asked == [(resource.RLIMIT_AS, (math_worker.MEMORY, math_worker.MEMORY))]
    assert capsys.readouterr().out.splitlines() == ["ready", '{"equal": true}']
