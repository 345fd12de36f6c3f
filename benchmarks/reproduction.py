"""The paper's experiments on the public tables: rows as CSV, tables and figures of docs/experiment.md.

    .venv/bin/python benchmarks/reproduction.py [--data FOLDER] [--repeats 100] [--only main,epsilon,...]

All rows go to reproduction.csv beside this file, unless only some sections were asked for. A table stands in
the page between two comments, "<!-- table NAME -->" and "<!-- end -->", and is replaced there; figures go to
docs/figures.  The tables of outputs are those of the folder in the environment variable HYPAC_DATA where
--data names none.
"""

import os
import sys
import time
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path

from runner import ROOT, machine, markdown, options_of, parts, replace_between, seconds_of

from routing.core.experiment import plots
from routing.core.experiment.reading import read_table
from routing.core.experiment.reliability import reliability
from routing.core.experiment.report import as_csv
from routing.core.experiment.run import run
from routing.core.experiment.settings import Settings
from routing.core.experiment.shift import weights
from routing.core.experiment.summary import Row
from routing.core.experiment.table import Table

PAGE = ROOT / "docs" / "experiment.md"
ROWS = ROOT / "benchmarks" / "reproduction.csv"
FIGURES = ROOT / "docs" / "figures"

IMAGENET, MATH, GSM = "imagenet_resnet34_resnet152", "zeroeval_math-l5_2tier", "zeroeval_gsm_2tier"
SIZES = {IMAGENET: 1000, MATH: 300, GSM: 300}
SHORT = {IMAGENET: "imagenet", MATH: "math", GSM: "gsm"}
TITLES = {IMAGENET: "ImageNet", MATH: "MATH-L5", GSM: "GSM8K"}
PAPER_BOUNDS = ("clt", "hoeffding", "empirical_bernstein", "betting")
CERTIFYING = ("fixed_sequence", "multi_chain", "split_fixed_sequence")
BASELINES = ("pac_labeling_1", "pac_labeling_2", "cse", "coannotating", "best_single_model")
SHOWN = ("fixed_sequence", "pointwise_argmin", "pac_labeling_1", "pac_labeling_2", "cse", "coannotating")
CASCADES = ("bargain_1", "bargain_2", "lotus_1", "lotus_2")
# Of the rules the page shows these; the others are rows of the CSV alone.
ON_PAGE = ("fixed_sequence", "pointwise_argmin", "pac_labeling_1", "coannotating", *CASCADES)
SECTIONS = ("main", "cascades", "population", "epsilon", "size", "bounds", "scores", "shift")
SEVERITIES = (0.0, 0.5, 1.0, 2.0, 3.0)


class Reproduction:
    """The sections, and where their tables and figures go."""

    def __init__(self, data: Path, repeats: int) -> None:
        self.repeats = repeats
        self.done: dict[Row, None] = {}
        zeroeval = {"models": (1, 2), "costs": (0.02, 0.2), "human_cost": 1, "loss": "numeric"}
        self.tables = {
            name: read_table(data / f"{name}.csv", **({} if name == IMAGENET else zeroeval))
            for name in TITLES
        }
        FIGURES.mkdir(exist_ok=True)

    def rows(self, table: Table, *, epsilons: str, m: str = "", **settings: object) -> list[Row]:
        """The rows of one experiment; ``epsilons`` and ``m`` are lists with commas."""
        sizes = tuple(int(size) for size in m.split(",") if size) or (SIZES[table.name],)
        given = Settings(
            epsilons=tuple(Decimal(value) for value in epsilons.split(",")),
            sizes=sizes,
            repeats=self.repeats,
            **settings,
        )
        rows = list(run(table, given).rows)
        self.done |= dict.fromkeys(rows)
        return rows

    def save(self, name: str, figure: object) -> None:
        figure.savefig(FIGURES / f"reproduction-{name}.png", dpi=90, facecolor="white")

    def main(self) -> None:
        """Every rule with every bound; targets "dataset" for the product's promise, "pool" beside it."""
        shown: list[Row] = []
        for table in self.tables.values():
            for target in ("dataset", "pool"):
                shared = {"epsilons": "0.05,0.10", "targets": (target,)}
                usual = self.rows(table, rules=CERTIFYING, **shared)
                bounds = ("betting_upper", "hoeffding_bentkus", "hoeffding")
                self.rows(table, rules=("fixed_sequence",), bounds=bounds, **shared)
                paper = self.rows(table, rules=("pointwise_argmin",), bounds=PAPER_BOUNDS, **shared)
                usual += [row for row in paper if row.bound == PAPER_BOUNDS[0]]
                usual += self.rows(table, rules=("lexicographic", *BASELINES), **shared)
                shown += [row for row in usual if target == "dataset" and row.epsilon == 0.05]
        write("summary", side_by_side(shown))

    def cascades(self) -> None:
        """One model and people: the cascades of others."""
        shown: list[Row] = []
        for table in self.tables.values():
            rules = [rule for rule in CASCADES if all(table.scored) or rule.endswith("_1")]
            shown += self.rows(table, epsilons="0.05", targets=("dataset",), rules=tuple(rules))
        write("cascades", side_by_side(shown))

    def population(self) -> None:
        """The target for which the paper states its guarantee, and the bounds that serve it."""
        bounds = ("binomial", "betting_upper", "hoeffding_bentkus", "empirical_bernstein", "hoeffding")
        self.rows(
            self.tables[IMAGENET],
            epsilons="0.05,0.10",
            targets=("population",),
            rules=("fixed_sequence",),
            bounds=bounds,
        )

    def epsilon(self) -> None:
        """Error and saving against epsilon."""
        for name, table in self.tables.items():
            rules = SHOWN if all(table.scored) else tuple(r for r in SHOWN if r not in BASELINES[1:3])
            rows = self.rows(table, epsilons="0.02,0.03,0.05,0.075,0.10,0.15", rules=rules)
            self.save(f"epsilon-{SHORT[name]}", plots.against_epsilon(rows))

    def size(self) -> None:
        """Saving against the size of the calibration set."""
        rules = ("fixed_sequence", "pointwise_argmin", "pac_labeling_1")
        for name, sizes in ((IMAGENET, "250,500,1000,2000,4000,8000"), (MATH, "100,150,200,300,400,500")):
            rows = self.rows(self.tables[name], epsilons="0.05", m=sizes, rules=rules)
            self.save(f"size-{SHORT[name]}", plots.against_size(rows))

    def bounds(self) -> None:
        """The paper's four bounds side by side, as in its appendix, in its own rule."""
        for name in (IMAGENET, MATH):
            rows = self.rows(
                self.tables[name],
                epsilons="0.02,0.03,0.05,0.075,0.10,0.15",
                targets=("pool",),
                rules=("pointwise_argmin",),
                bounds=PAPER_BOUNDS,
            )
            self.save(f"bounds-{SHORT[name]}", plots.bounds_side_by_side(rows))

    def scores(self) -> None:
        """Reliability diagrams, whose ECE is printed, and the feasible region with the chains."""
        rows = []
        for name, table in self.tables.items():
            self.save(f"reliability-{SHORT[name]}", plots.reliability_diagrams(table))
            for k in range(table.models):
                if table.scored[k]:
                    found = reliability(table.u[:, k], table.loss[:, k])
                    rows.append({"table": name, "model": table.numbers[k], "ECE": f"{found.ece:.3f}"})
        print(markdown(rows))
        settings = Settings(sizes=(SIZES[MATH],))
        self.save("region-math", plots.feasible_region_figure(self.tables[MATH], settings))

    def shift(self) -> None:
        """Calibration on the table, deployment on harder reweighted ones, whose errors are printed."""
        table = self.tables[IMAGENET]
        for drift, name in ((0.0, "shift"), (0.5, "drift")):
            rows = self.rows(
                table,
                epsilons="0.05,0.10",
                targets=("population",),
                rules=("fixed_sequence", "pointwise_argmin", "pac_labeling_1"),
                severities=SEVERITIES,
                drift=drift,
            )
            self.save(name, plots.against_severity(rows))
        shown = []
        for drift, severity in product((0.0, 0.5), SEVERITIES):
            weight = weights(table, severity, drift)
            first, second = (f"{100 * error:.1f}" for error in weight @ table.loss)
            row = {
                "drift": f"{drift:g}",
                "severity": f"{severity:g}",
                "mean U": f"{weight @ table.u[:, 0]:.3f}",
            }
            shown.append(row | {"error of model 1 %": first, "of model 2 %": second})
        print(markdown(shown))


def write(name: str, text: str) -> None:
    """Replace the table ``name`` of the page."""
    replace_between(PAGE, f"<!-- table {name} -->", "<!-- end -->", text)


def side_by_side(rows: list[Row]) -> str:
    """A Markdown table with a line for each rule, and the tables of outputs beside each other: in a cell the
    error in per cent, the share of draws above epsilon, and the net saving in per cent.
    """
    names = list(dict.fromkeys(row.table for row in rows))
    found = {(f"{row.rule}{'' if row.holds_level else ' *'}", row.table): row for row in rows}
    rules = dict.fromkeys(rule for rule, _ in found if rule.removesuffix(" *") in ON_PAGE)
    return markdown(
        {"rule": rule, **{TITLES[name]: _figures(found.get((rule, name))) for name in names}}
        for rule in rules
    )


def _figures(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{100 * row.error_mean:.2f}, {row.violation_rate:.2f}, {100 * row.net_saving_mean:.1f}"


def main() -> None:
    options = options_of(
        __doc__,
        data=(os.environ.get("HYPAC_DATA", ""), "folder of the tables"),
        repeats=(100, "draws a row"),
        only=("", "sections, with commas; without it all"),
    )
    if not options.data:
        sys.exit("Name the folder of the tables with --data or HYPAC_DATA.")
    work = Reproduction(Path(options.data), options.repeats)
    began = time.perf_counter()
    for name in parts(options.only) or SECTIONS:
        taken = seconds_of(getattr(work, name))
        print(f"{name}: {taken:.0f} s", flush=True)
    if not options.only:
        ROWS.write_text(as_csv(list(work.done)), encoding="utf-8")
        write(
            "how",
            f"{date.today():%Y-%m-%d}, `.venv/bin/python benchmarks/reproduction.py`, "
            f"{options.repeats} draws a row, {time.perf_counter() - began:.0f} s on "
            f"{machine('numpy', 'scipy')}.",
        )


if __name__ == "__main__":
    main()
