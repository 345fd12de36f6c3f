"""What every model's own score saves: the rule `every_score` beside its chains alone and today's rule.

    .venv/bin/python benchmarks/every_score.py [--repetitions 100] [--only A,B] [--target dataset]

Each row is a fixed pool: a table of outputs from the folder in the environment variable HYPAC_DATA, or a
world of testbed/known_truth.py, drawn once from a fixed seed.  Every repetition draws calibration set, pilot
and tie-breaks anew; all columns see the same.  Everything is paid: each item once per source, pilot and asked
items included.  Prints net saving in per cent, and of the last column its standard error and how often the
promise was broken.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from runner import Table as Printed, machine, parser_of

from routing.core.every_score.build import ChainBuilder, ScoreChains
from routing.core.experiment.every_score import chain_builder_of, decide_by_every_score, decide_with
from routing.core.experiment.measure import Decides, Measured, Terms, measure
from routing.core.experiment.methods import METHODS
from routing.core.experiment.reading import read_table
from routing.core.experiment.split import Split
from routing.core.experiment.table import Table
from routing.core.plan import Plan
from testbed.known_truth import DATA, SETTINGS
from testbed.settings import LANGUAGE

SEEDS = {"A": 1, "A'": 1, "B": 0, "f2-worse cheap": 0, "four scored sources": 0, "useless first": 0}
COLUMNS = ("today", "last alone", "cascade alone", "first alone", "every_score")


@dataclass(frozen=True)
class Row:
    """One table with one plan."""

    name: str
    table: Table
    m: int
    epsilon: str

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


def rows(tiny: str = "") -> Iterator[Row]:
    """The tables that are at hand, then the worlds; `tiny` is a file that benchmarks/tiny_pair.py wrote."""
    if tiny:
        for epsilon in ("0.02", "0.01"):
            yield Row("tiny pair", read_table(Path(tiny), loss="numeric", blank="pass"), 400, epsilon)
    imagenet = DATA / "imagenet_resnet34_resnet152.csv"
    if imagenet.exists():
        yield Row("ImageNet", read_table(imagenet), 1000, "0.05")
    for name, m in (("math-l5", 300), ("gsm", 300)):
        file = DATA / f"zeroeval_{name}_2tier.csv"
        if file.exists():
            known = {"costs": LANGUAGE[:2], "human_cost": LANGUAGE[2], "loss": "numeric"}
            table = read_table(file, models=(1, 2), **known)
            yield Row({"math-l5": "MATH-L5", "gsm": "GSM8K"}[name], table, m, "0.05")
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


def main() -> None:
    options = parser_of(
        __doc__,
        repetitions=(100, "draws of each row"),
        only=("", "only these rows, with commas between"),
        columns=(",".join(COLUMNS), "only these columns"),
        target=("dataset", "what is promised"),
        tiny=("", "a table of benchmarks/tiny_pair.py"),
        seed=(0, "of the draws"),
    ).parse_args()
    print(machine("numpy", "scipy"))
    print(f"`benchmarks/every_score.py --repetitions {options.repetitions}`, target {options.target}")
    columns = [column for column in COLUMNS if column in options.columns.split(",")]
    printed = Printed("table", "eps", "m", *columns, "+-", "broken", "s", title="")
    for row in rows(options.tiny):
        if options.only and row.name not in options.only.split(","):
            continue
        started = time.perf_counter()
        found: dict[str, list[Measured]] = {}
        for seed in np.random.SeedSequence(options.seed).spawn(options.repetitions):
            split = Split(row.table, m=row.m, p=0.9, seed=seed)
            for column in columns:
                if column in ("last alone", "cascade alone") and not row.table.scored[-1]:
                    continue
                plan = row.plan(options.target, "fixed_sequence" if column == "today" else "every_score")
                terms = Terms(options.target, float(row.epsilon), plan.pilot)
                found.setdefault(column, []).append(measure(split, WAYS[column](split, plan), terms))
        savings = {column: [100 * one.net_saving for one in many] for column, many in found.items()}
        last = savings[columns[-1]]
        printed.row(
            row.name,
            row.epsilon,
            row.m,
            *(f"{np.mean(savings[column]):.1f}" if column in savings else "-" for column in columns),
            f"{np.std(last) / len(last) ** 0.5:.2f}",
            f"{np.mean([one.violated for one in found[columns[-1]]]):.3f}",
            f"{time.perf_counter() - started:.0f}",
        )


if __name__ == "__main__":
    main()
