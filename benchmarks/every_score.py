"""What every model's own score saves: the rule `every_score` beside its chains alone and today's rule.

    .venv/bin/python benchmarks/every_score.py [--repetitions 100] [--only A,B] [--target dataset]

Each row is a fixed pool: a table of outputs from the folder in the environment variable HYPAC_DATA, or a
world of testbed/known_truth.py, drawn once from a fixed seed.  Every repetition draws calibration set, pilot
and tie-breaks anew; all columns see the same.  Everything is paid: each item once per source, pilot and asked
items included.  Prints net saving in per cent, and of the last column its standard error and how often the
promise was broken.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from runner import Table as Printed, machine, options_of, parts

from routing.core.every_score.build import ChainBuilder, ScoreChains
from routing.core.experiment.every_score import chain_builder_of, decide_by_every_score, decide_with
from routing.core.experiment.measure import Decides, Measured, Terms, measure
from routing.core.experiment.methods import METHODS
from routing.core.experiment.reading import read_table
from routing.core.experiment.split import Split
from routing.core.experiment.table import Table
from routing.core.plan import Plan
from testbed.known_truth import DATA, SETTINGS, available
from testbed.settings import LANGUAGE

SEEDS = {"A": 1, "A'": 1, "B": 0, "f2-worse cheap": 0, "four scored sources": 0, "useless first": 0}


class Row(NamedTuple):
    """One table with one plan."""

    name: str
    table: Table
    m: int
    epsilon: str = "0.05"

    def plan(self, target: str, rule: str) -> Plan:
        return Plan(
            epsilon=self.epsilon,
            alpha="0.05",
            target=target,
            m=self.m,
            p="0.9",
            pool_size=self.table.size,
            costs=tuple(f"{cost:.12g}" for cost in self.table.costs.mean(axis=0)),
            rule=rule,
            loss=self.table.loss_name,
            loss_params=self.table.loss_params,
        )


def rows(tiny: Path | None) -> Iterator[Row]:
    """The tables that are at hand, then the worlds; `tiny` is a file that benchmarks/tiny_pair.py wrote."""
    if tiny:
        for epsilon in ("0.02", "0.01"):
            yield Row("tiny pair", read_table(tiny, loss="numeric", blank="pass"), 400, epsilon)
    zeroeval = {"models": (1, 2), "costs": LANGUAGE[:2], "human_cost": LANGUAGE[2], "loss": "numeric"}
    for name in ("ImageNet", "MATH-L5", "GSM8K"):
        if available(SETTINGS[name]):
            known = {} if name == "ImageNet" else zeroeval
            yield Row(name, read_table(DATA / SETTINGS[name].file, **known), SETTINGS[name].m)
    for name, seed in SEEDS.items():
        setting = SETTINGS[name]
        world = setting.draw(np.random.default_rng(seed))
        costs = np.array([float(cost) for cost in setting.costs])
        table = Table(
            name=name,
            numbers=tuple(range(1, len(costs))),
            loss=world.losses,
            usable=np.ones(world.losses.shape, dtype=np.bool_),
            u=world.own,
            costs=np.tile(costs, (setting.size, 1)),
            answers=world.answers.astype(str).astype(object),
        )
        yield Row(name, table, setting.m, setting.epsilon)


def alone(chain_of: Callable[[ChainBuilder], object]) -> Callable[[Split, Plan], Decides]:
    """One chain at all of alpha."""

    def decide(split: Split, plan: Plan) -> Decides:
        seen = chain_builder_of(split, plan)
        chain = replace(chain_of(seen), share=None)
        return decide_with(split, plan, ScoreChains(seen.scored, (chain,), lazy=seen.dear))

    return decide


WAYS: dict[str, Callable[[Split, Plan], Decides]] = {
    "today": lambda split, plan: METHODS.get("fixed_sequence").decide(split, plan),
    "last alone": alone(lambda seen: seen.own(len(seen.scored) - 1)),
    "cascade alone": alone(lambda seen: seen.cascade(lazy=seen.dear)),
    "first alone": alone(lambda seen: seen.own(0)),
    "every_score": decide_by_every_score,
}


def drawn(
    row: Row, target: str, columns: list[str], seeds: list[np.random.SeedSequence]
) -> dict[str, list[Measured]]:
    """What each column made of each draw; not of a chain on a score that the table does not have."""
    found: dict[str, list[Measured]] = defaultdict(list)
    for seed in seeds:
        split = Split(row.table, m=row.m, p=0.9, seed=seed)
        for column in columns:
            if row.table.scored[-1] or column not in ("last alone", "cascade alone"):
                plan = row.plan(target, "fixed_sequence" if column == "today" else "every_score")
                terms = Terms(target, float(row.epsilon), plan.pilot)
                found[column].append(measure(split, WAYS[column](split, plan), terms))
    return found


def main() -> None:
    options = options_of(
        __doc__,
        repetitions=(100, "draws of each row"),
        only=("", "only these rows, with commas between"),
        columns=(",".join(WAYS), "only these columns"),
        target=("dataset", "what is promised"),
        tiny=(Path, "a table of benchmarks/tiny_pair.py"),
        seed=(0, "of the draws"),
    )
    print(machine("numpy", "scipy"))
    print(f"`benchmarks/every_score.py --repetitions {options.repetitions}`, target {options.target}")
    columns = [column for column in WAYS if column in parts(options.columns)]
    printed = Printed("table", "eps", "m", *columns, "+-", "broken", "s")
    for row in rows(options.tiny):
        if options.only and row.name not in parts(options.only):
            continue
        started = time.perf_counter()
        seeds = np.random.SeedSequence(options.seed).spawn(options.repetitions)
        found = drawn(row, options.target, columns, seeds)
        savings = {column: [100 * one.net_saving for one in many] for column, many in found.items()}
        printed.row(
            *(row.name, row.epsilon, row.m),
            *(f"{np.mean(savings[column]):.1f}" if column in savings else "-" for column in columns),
            f"{np.std(savings[columns[-1]]) / options.repetitions**0.5:.2f}",
            f"{np.mean([one.violated for one in found[columns[-1]]]):.3f}",
            f"{time.perf_counter() - started:.0f}",
        )


if __name__ == "__main__":
    main()
