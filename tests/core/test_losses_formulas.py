"""The loss that compares formulas, and the process in which it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from routing.core.losses import LossError, make_loss
from routing.core.losses.math_worker import compare, formula

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[2]
PATIENT = {"seconds": 300}
"""What is late counts as wrong: not for want of a faster machine."""


@pytest.mark.parametrize(
    ("label", "prediction", "value"),
    [
        ("1/2", "0.5", 0),
        (r"\frac{1}{2}", "$0.5$", 0),
        (r"2\sqrt{2}", r"\sqrt{8}", 0),
        ("x^2-1", "(x-1)(x+1)", 0),
        ("5", r"so that the answer is \boxed{5}", 0),
        ("1,000", "1000", 0),
        ("Tuesday", r"\text{Tuesday}", 0),
        ("2", r"2\sqrt{2}", 1),
        ("Tuesday", "yadseuT", 1),
        ("[2,3)", "[2,3]", 1),
        ("5", "", 1),
        ("5", "{" * 40, 1),
    ],
)
def test_formulas_that_are_equal(label: str, prediction: str, value: float) -> None:
    assert make_loss("math_equivalence", PATIENT)(label, prediction) == value


def test_formulas_are_compared_as_the_parameters_say() -> None:
    assert make_loss("math_equivalence", PATIENT)("0.333", "1/3") == 1
    assert make_loss("math_equivalence", {"decimals": 2, **PATIENT})("0.333", "1/3") == 0
    assert make_loss("math_equivalence", PATIENT)("x+1", "y+1") == 1
    assert make_loss("math_equivalence", {"strict": False, **PATIENT})("x+1", "y+1") == 0


def test_a_label_without_a_formula_is_an_error() -> None:
    with pytest.raises(LossError, match="no formula is found in the label ' '"):
        make_loss("math_equivalence")(" ", "5")


def test_a_formula_that_never_ends_is_wrong_and_does_not_stop_the_next_one() -> None:
    assert make_loss("math_equivalence", {"seconds": 1})("9^{9^{9^9}}", "5") == 1
    assert make_loss("math_equivalence", PATIENT)("1/4", "0.25") == 0


@given(st.text(st.sampled_from("0123456789xyz+-*/^_=(){}[]\\$,. \x00é\ud800"), max_size=12))
@settings(max_examples=40, deadline=None)
def test_no_answer_whatever_it_is_stops_an_analysis(answer: str) -> None:
    assert make_loss("math_equivalence", {"seconds": 2})("x^2+3", answer) in {0, 1}


def test_formulas_are_compared_in_every_thread() -> None:
    loss = make_loss("math_equivalence", PATIENT)
    with ThreadPoolExecutor(4) as threads:
        values = list(threads.map(lambda k: loss(f"{k}/7", f"{2 * k}/{14 if k % 2 else 13}"), range(1, 13)))
    assert values == [0, 1] * 6


def test_a_forked_process_has_a_helper_of_its_own() -> None:
    code = (
        "import os; from routing.core.losses import make_loss;"
        f"f = make_loss('math_equivalence', {PATIENT});"
        "f('1/2', '0.5'); child = os.fork();\n"
        "if not child: os._exit(int(f('1/8', '0.125')))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), f('1/16', '0.0625'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.split() == ["0", "0.0"]


def test_a_worker_that_cannot_start_says_what_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.core.losses import math_equivalence

    monkeypatch.setattr(math_equivalence, "SCRIPT", ROOT / "no such file.py")
    monkeypatch.setattr(math_equivalence, "_worker", math_equivalence._Worker())
    with pytest.raises(LossError, match="could not load math-verify"):
        make_loss("math_equivalence")("1/32", "0.03125")


def test_a_helper_that_was_ended_is_replaced() -> None:
    from routing.core.losses import math_equivalence

    worker = math_equivalence._Worker()
    request = {"label": "1/2", "prediction": "0.5", "decimals": 6, "strict": True}
    worker.close()
    assert worker.ask(request, 300) == {"equal": True}
    process = worker._process
    assert process is not None
    process.kill()
    process.wait()
    assert worker.ask(request, 300) == {"equal": True}
    again = worker._process
    assert again is not None
    worker.close()
    assert again.poll() is not None


def test_a_helper_that_ends_while_it_is_asked_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.core.losses import math_equivalence

    worker = math_equivalence._Worker()
    request = {"label": "1/2", "prediction": "0.5", "decimals": 6, "strict": True}
    assert worker.ask(request, 300) == {"equal": True}
    process = worker._process
    assert process is not None
    process.kill()
    process.wait()
    monkeypatch.setattr(process, "poll", lambda: None)  # it ends just after it was looked at
    assert worker.ask(request, 300) == {"equal": True}
    assert worker._process is not process
    worker.close()


def test_a_pair_that_ends_every_helper_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from routing.core.losses import math_equivalence

    script = tmp_path / "ends.py"
    script.write_text("import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    worker = math_equivalence._Worker()
    monkeypatch.setattr(math_equivalence, "SCRIPT", script)
    monkeypatch.setattr(math_equivalence, "_worker", worker)
    assert make_loss("math_equivalence")("1/64", "0.015625") == 1
    worker.close()
    math_equivalence._equal.cache_clear()


def test_without_the_package_the_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.core.losses import math_equivalence

    monkeypatch.setattr(math_equivalence, "find_spec", lambda name: None)
    with pytest.raises(LossError, match="needs the package math-verify"):
        make_loss("math_equivalence", {"decimals": 7})


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (" x+1 ", "$x+1$"),
        ("a $x$ b", "a $x$ b"),
        (r"\boxed{3}", r"\boxed{3}"),
        (r"\(3\)", r"\(3\)"),
        (r"\$5", "$5$"),
        ("no real roots", r"$\text{no real roots}$"),
        ("ab", "$ab$"),
    ],
)
def test_which_part_of_a_text_is_the_formula(text: str, marked: str) -> None:
    assert formula(text) == marked


def test_the_worker_answers_line_by_line() -> None:
    request = {"label": "1/2", "prediction": "0.5", "decimals": 6, "strict": True}
    assert compare(request) == {"equal": True}
    assert compare({**request, "prediction": "\n"}) == {"equal": False}
    assert compare({**request, "label": " "}) == {"unreadable": True}
    script = ROOT / "routing" / "core" / "losses" / "math_worker.py"
    lines = json.dumps(request) + "\n" + json.dumps({**request, "label": "3"}) + "\n"
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env=dict(os.environ),
    )
    assert done.stdout.splitlines() == ["ready", '{"equal": true}', '{"equal": false}']
