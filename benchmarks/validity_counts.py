"""Counts of many draws, made on several processes and kept in a file as they come, for validity.py."""

from __future__ import annotations

import json
import math
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

from testbed.level import Summed

Counts = dict[Any, Any]
"""By cell, added up."""


@dataclass(frozen=True)
class Tally:
    """`run` makes the draws of a job and counts; `cell` and `count` are the types of what it gives. No job is
    begun after `seconds`. Each finished job is a line of JSON in `kept`, and none of these is run again.
    """

    run: Callable[[Any], Counts]
    cell: type
    count: type[Summed]
    processes: int
    seconds: float = math.inf
    kept: Path | None = None

    @classmethod
    def asked(cls, options: Namespace, run: Callable[[Any], Counts], cell: type, count: type[Summed]) -> Self:
        return cls(run, cell, count, options.jobs, 60 * options.minutes, options.kept)

    def of(self, jobs: Iterable[Any]) -> Counts:
        counts: Counts = {}
        done = self._done()
        left = []
        for job in jobs:
            if repr(job) in done:
                self._add(counts, done[repr(job)])
            else:
                left.append(job)
        if not left or not self.seconds:
            return counts
        started = time.perf_counter()
        with get_context("spawn").Pool(self.processes) as pool:
            found = zip(left, pool.imap(self.run, left), strict=True)
            for number, (job, part) in enumerate(found, start=1):
                self._keep(job, part)
                self._add(counts, part.items())
                elapsed = time.perf_counter() - started
                if number % 20 == 0 or number == len(left):
                    print(f"{number}/{len(left)} jobs, {elapsed:.0f} s", file=sys.stderr, flush=True)
                if elapsed > self.seconds:
                    break  # leaving the block ends the processes
        return counts

    def _add(self, counts: Counts, found: Iterable[tuple[Any, Summed]]) -> None:
        for cell, count in found:
            counts.setdefault(cell, self.count()).add(count)

    def _done(self) -> dict[str, list[tuple[Any, Any]]]:
        if self.kept is None or not self.kept.exists():
            return {}
        entries = map(json.loads, self.kept.read_text(encoding="utf-8").splitlines())
        return {
            entry["job"]: [(self.cell(**cell), self.count(**count)) for cell, count in entry["counts"]]
            for entry in entries
        }

    def _keep(self, job: Any, found: Counts) -> None:
        if self.kept is not None:
            pairs = [[asdict(cell), asdict(count)] for cell, count in found.items()]
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": repr(job), "counts": pairs}) + "\n")
