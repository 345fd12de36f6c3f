"""Damages inputs of one reader, keeps those that reach new lines of ours, and makes those small that fail."""

import hashlib
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

from testbed.fuzz.target import Target

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / name}/" for name in ("annotation", "clients", "hypac_site", "routing"))
MINIMISING_SECONDS = 20


class TooSlowError(BaseException):
    """Not an Exception: readers catch those."""


class TooLargeError(BaseException):
    pass


@dataclass(frozen=True)
class Finding:
    """`error` is what was raised, `where` the line of ours that it came from, which tells faults apart."""

    target: str
    error: str
    where: str
    trace: str
    data: bytes

    @property
    def name(self) -> str:
        return f"{self.error.split(':')[0].strip()}-{hashlib.sha256(self.where.encode()).hexdigest()[:8]}"


@dataclass
class Outcome:
    runs: int = 0
    kept: int = 0
    findings: list[Finding] = field(default_factory=list)


def replayed(target: Target, data: bytes) -> Finding | None:
    """What is wrong with how the target reads this; None where nothing is."""
    try:
        with _limited(target):
            target.read(data)
    except target.refusals as error:
        str(error)  # has to be told
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return _finding(target, data, error)
    return None


def fuzzed(
    target: Target,
    *,
    runs: int = 0,
    seconds: float = 0.0,
    seed: int = 1,
    before: Callable[[bytes], object] = lambda _: None,
) -> Outcome:
    """So many runs, or so many seconds. `before` is called with each input: a process may die of it."""
    rng, outcome, reached = Random(seed), Outcome(), _Reached()
    corpus = list(target.seeds())
    for data in corpus:
        before(data)
        with reached.traced(target.guided):
            _note(outcome, target, replayed(target, data))
    until = time.monotonic() + seconds
    while outcome.runs < runs or (seconds and time.monotonic() < until):
        data = target.mutate(rng, rng.choice(corpus), corpus, target.words)
        outcome.runs += 1
        before(data)
        with reached.traced(target.guided):
            finding = replayed(target, data)
        if finding:
            _note(outcome, target, finding)
        elif reached.anything_new():
            corpus.append(data)
            outcome.kept += 1
    return outcome


def _note(outcome: Outcome, target: Target, finding: Finding | None) -> None:
    if finding and finding.name not in {one.name for one in outcome.findings}:
        outcome.findings.append(_small(target, finding))


# --- Limits ---


@contextmanager
def _limited(target: Target) -> Iterator[None]:
    """Raises TooSlowError, by the time of the processor, and TooLargeError, by what the process grew by."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, target.seconds)
    size = _begin_to_measure()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    grown = _largest() - size
    if grown > target.megabytes:
        raise TooLargeError(f"{grown} MB")


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError("more seconds of the processor than it may take")


def _begin_to_measure() -> int:
    """Megabytes of now. Where the system cannot forget what they were (not Linux), growth alone is seen."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return _largest()


def _largest() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


# --- Lines that were reached ---


class _Reached:
    """Lines of our own packages; what libraries do is their own."""

    def __init__(self) -> None:
        self._lines: set[tuple[CodeType, int]] = set()
        self._ours: dict[CodeType, bool] = {}
        self._known = 0

    def anything_new(self) -> bool:
        before, self._known = self._known, len(self._lines)
        return self._known > before

    @contextmanager
    def traced(self, wanted: bool) -> Iterator[None]:
        if not wanted:
            yield
            return
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        ours = self._ours.get(code)
        if ours is None:
            ours = self._ours[code] = code.co_filename.startswith(OURS)
        return self._line if ours else None

    def _line(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        self._lines.add((frame.f_code, frame.f_lineno))
        return self._line


# --- What fails ---


def _finding(target: Target, data: bytes, error: BaseException) -> Finding:
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(OURS)] or frames
    # Where time or memory runs out is chance.
    by_chance = isinstance(error, TooSlowError | TooLargeError | MemoryError)
    where = kind if by_chance else f"{kind} {ours[-1].filename.removeprefix(str(ROOT))} {ours[-1].name}"
    trace = "".join(traceback.format_exception(error))
    return Finding(target.name, f"{kind}: {str(error)[:200]}", where, trace, data)


def _small(target: Target, finding: Finding) -> Finding:
    """The same fault of less: pieces are left out, halves first, single bytes last."""
    until = time.monotonic() + MINIMISING_SECONDS
    size = max(len(finding.data) // 2, 1)
    while size and time.monotonic() < until:
        start, smaller = 0, False
        while start < len(finding.data) and time.monotonic() < until:
            shorter = finding.data[:start] + finding.data[start + size :]
            found = replayed(target, shorter)
            if found and found.where == finding.where:
                finding, smaller = found, True
            else:
                start += size
        if not smaller or size > 1:
            size //= 2
    return finding
