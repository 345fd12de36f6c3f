"""`math_equivalence`: whether two answers are the same mathematics, however they are written.

The comparison is math-verify's (https://github.com/huggingface/Math-Verify).  It is made in a helper
process, `math_worker`, which is killed where an answer keeps it busy too long: this works in every thread,
where the signals that math-verify itself relies on do not.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock, Timer
from typing import Any

from routing.core.losses.base import Loss, LossError, flag, known_parameters, short, whole_number
from routing.core.messages import declare, gettext_noop, say

SCRIPT = Path(__file__).with_name("math_worker.py")
ATTEMPTS = 2
"""How often a pair is tried that ends the process by itself, which may be for another reason: a system that
runs out of memory ends whatever it likes."""
START_SECONDS = 120
"""How long loading the algebra system may take, on a machine that is busy."""


class _Worker:
    """The helper process: started when first asked, again after it ended; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, bool] | None:
        """The answer; None where it took longer than ``seconds`` or ended the process, two times over."""
        with self._lock:
            for _ in range(ATTEMPTS):
                if self._process is None or self._process.poll() is not None:
                    self._start()
                line, late = self._exchange(json.dumps(request), seconds)
                if line:
                    answer: dict[str, bool] = json.loads(line)
                    return answer
                self._end()
                if late:
                    break
            return None

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            # Sets of symbols are walked in the order of their hashes: one order, one answer.
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        if not self._exchange(None, START_SECONDS)[0]:
            self._end()
            raise LossError(say("math_equivalence.not_loaded", python=sys.executable))

    def _exchange(self, line: str | None, seconds: float) -> tuple[str, bool]:
        """Send a line and read one, '' where the process ended; and whether the time was up."""
        process = self._process
        assert process is not None  # noqa: S101 - only called with a process
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        answered, late = Event(), Event()

        def give_up() -> None:
            if not answered.is_set():
                late.set()
                process.kill()

        timer = Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        answer = ""
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            pass  # it ended before it read the line
        finally:
            answered.set()
            timer.cancel()
        return answer, late.is_set()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was still to be sent to a dead process
                    stream.close()


_worker = _Worker()
atexit.register(lambda: _worker.close())


def _forget() -> None:
    """A forked process must not talk to the helper of its parent: it starts its own."""
    global _worker
    _worker = _Worker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@lru_cache(maxsize=65_536)
def _equal(label: str, prediction: str, decimals: int, strict: bool, seconds: int) -> bool:
    request = {"label": label, "prediction": prediction, "decimals": decimals, "strict": strict}
    answer = _worker.ask(request, seconds)
    if answer is None:
        return False
    if answer.get("unreadable"):
        raise LossError(say("math_equivalence.no_formula", label=short(label)))
    return answer["equal"]


@dataclass(frozen=True)
class MathEquivalence:
    """0 where the prediction equals the label mathematically, else 1.

    Numbers are compared to ``decimals`` places.  ``strict`` keeps variables and kinds of brackets apart.  A
    prediction that cannot be read, or compared within ``seconds``, is wrong.
    """

    decimals: int = 6
    strict: bool = True
    seconds: int = 10
    name: str = "math_equivalence"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        if label.strip() and label.strip() == prediction.strip():
            return 0.0
        return 0.0 if _equal(label, prediction, self.decimals, self.strict, self.seconds) else 1.0


@dataclass(frozen=True)
class MathEquivalenceKind:
    """`MathEquivalence` with what math-verify can be told."""

    name: str = "math_equivalence"
    title: str = gettext_noop("The same mathematics")
    summary: str = gettext_noop(
        "A formula or number is right if it is mathematically the same as the label: 1/2 is 0.5."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "decimals": gettext_noop("decimal places to which numbers must agree (default 6)"),
            "strict": gettext_noop("whether x + 1 and y + 1, (1, 2) and {1, 2} differ (default true)"),
            "seconds": gettext_noop(
                "time after which a comparison is given up and counts as wrong (default 10)"
            ),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        if find_spec("math_verify") is None:
            raise LossError(say("math_equivalence.not_installed"))
        return MathEquivalence(
            decimals=whole_number(params, "decimals", 6, 0, 30),
            strict=flag(params, "strict", True),
            seconds=whole_number(params, "seconds", 10, 1, 600),
        )


SAYS = {
    "math_equivalence.not_loaded": gettext_noop(
        "the loss 'math_equivalence' could not load math-verify; see what '%(python)s -c \"import "
        "math_verify\"' says"
    ),
    "math_equivalence.no_formula": gettext_noop(
        "no formula is found in the label %(label)s; correct it, or choose the loss 'exact_match'"
    ),
    "math_equivalence.not_installed": gettext_noop(
        "the loss 'math_equivalence' needs the package math-verify; install it with pip"
    ),
}
declare(SAYS)
