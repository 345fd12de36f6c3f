"""The command line of an experiment, the same with and without Django."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from routing.core.console import unread_output
from routing.core.exact import to_decimal
from routing.core.experiment.methods import METHODS
from routing.core.experiment.reading import read_table
from routing.core.experiment.report import as_csv, as_json, as_markdown
from routing.core.experiment.run import Results, list_cases, run
from routing.core.experiment.settings import ExperimentError, Settings
from routing.core.experiment.table import Table, TableError
from routing.core.losses import LOSSES
from routing.core.registry import UnknownNameError
from routing.core.targets import TARGETS

T = TypeVar("T")

DESCRIPTION = "Draw, decide and measure again and again on a table of per-item outputs."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options; values of a list are separated by commas or spaces."""
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument("file", type=Path, metavar="FILE", help="table, CSV or Parquet, one row per item")
    add = parser.add_argument
    add("--columns", **many, metavar="NAME=COLUMN", help="names in the file: y_true=gold,pred1=small")
    add("--models", **many, metavar="K", help="numbers of the models to use, cheapest first (default: all)")
    add("--costs", **many, metavar="C", help="cost of a label from each model, in place of cost1, cost2, ...")
    add("--human-cost", metavar="C", help="cost of a label from people, in place of cost_h")
    add("--expert-cost", metavar="C", help="cost of a label from the expert, in place of cost_e")
    add("--loss", default="zero_one", help=f"{', '.join(LOSSES.names())} or module:attribute")
    add("--loss-params", default="{}", metavar="JSON", help="parameters of the loss")
    add("--loss-bound", default="1", metavar="B", help="largest value of loss1, loss2, ... (default 1)")
    add(
        "--blank",
        choices=("wrong", "pass"),
        default="wrong",
        help="a blank prediction counts as an error, or passes the item to the next source",
    )
    add("--p-column", default="", metavar="COLUMN", help="each item's own probability of being asked about")
    add("--epsilon", **many, metavar="E", help="allowed error, several allowed (default 0.05)")
    add("--alpha", default="0.05", help="allowed probability of exceeding it (default 0.05)")
    add("--m", **many, metavar="M", help="calibration set (default: a quarter of the table, at most 1000)")
    add("--p", metavar="P", help="probability that people are asked about a drawn item (default 0.9)")
    add("--repeats", type=int, default=100, help="random draws (default 100)")
    add("--seed", type=int, default=0, help="of all draws (default 0)")
    add(
        "--target",
        **many,
        metavar="TARGET",
        help=f"{', '.join(TARGETS.names())}; default dataset, with --shift population",
    )
    add("--bound", **many, metavar="BOUND", help="default: that of the target; clt for the paper's rules")
    add("--rules", **many, metavar="RULE", help=f"default all: {', '.join(METHODS.names())}")
    add("--shift", **many, metavar="S", help="severities: deploy on a table reweighted to uncertain items")
    add("--drift", default="0", metavar="D", help="with --shift: models get worse at the same score, too")
    add("--json", type=Path, metavar="OUT", help="write the rows as a JSON list")
    add("--csv", type=Path, metavar="OUT", help="write the rows as CSV")
    add("--markdown", type=Path, metavar="OUT", help="write the table that is printed")
    add("--plots", type=Path, metavar="DIR", help="write the figures into a folder")
    add("--quiet", action="store_true", help="no progress bar and no table")


def execute(options: argparse.Namespace, *, say: Callable[[str], object]) -> None:
    """Do what ``options`` ask for; ``say`` prints a line.

    Raises
    ------
    ExperimentError, TableError
        With a message for the person who typed the command.
    """
    settings = _settings(options)
    table = _table(options)
    if not options.quiet:
        models = "model " if table.models == 1 else "models "
        models += ", ".join(str(number) for number in table.numbers)
        say(f"{table.name}: {table.size:,} items, {models} and people")
    if table.people is not None and not options.quiet:
        share = 100 * float(table.people.loss.mean())
        say(
            f"People differ from the expert on {share:.1f} % of items; errors are counted against the expert."
        )
    cases, refused = list_cases(table, settings)
    for sentence in refused:
        say(f"Left out: {sentence}.")
    if not cases:
        raise ExperimentError("nothing that was asked for can be run on this table")
    _prepare(options)
    results = _run(table, settings, quiet=options.quiet)
    if not options.quiet:
        say(as_markdown(results.rows))
    _write(options, table, settings, results, say)


def _run(table: Table, settings: Settings, *, quiet: bool) -> Results:
    from tqdm import tqdm

    # disable=None: no bar where nobody watches.
    with tqdm(total=settings.repeats, unit="draw", disable=True if quiet else None) as bar:
        return run(table, settings, progress=bar.update)


def _prepare(options: argparse.Namespace) -> None:
    """Make the folders of what will be written, so that no long run ends in a path that cannot be."""
    for path in (options.json, options.csv, options.markdown, options.plots):
        if path is None:
            continue
        folder = path if path is options.plots else path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExperimentError(f"{path} cannot be written: {error.strerror}") from None
        if path.is_dir() and path is not options.plots:
            raise ExperimentError(f"{path} cannot be written: it is a folder")


def _write(
    options: argparse.Namespace,
    table: Table,
    settings: Settings,
    results: Results,
    say: Callable[[str], object],
) -> None:
    for path, text in (
        (options.json, as_json),
        (options.csv, as_csv),
        (options.markdown, as_markdown),
    ):
        if path is not None:
            try:
                path.write_text(text(results.rows), encoding="utf-8")
            except OSError as error:
                raise ExperimentError(f"{path} cannot be written: {error.strerror}") from None
            say(f"Wrote {path}")
    if options.plots is not None:
        from routing.core.experiment.plots import draw_all

        try:
            paths = draw_all(table, settings, results.rows, options.plots)
        except OSError as error:
            raise ExperimentError(f"{options.plots} cannot be written: {error.strerror}") from None
        for path in paths:
            say(f"Wrote {path}")


def _table(options: argparse.Namespace) -> Table:
    columns: dict[str, str] = {}
    for pair in _split(options.columns):
        name, sign, column = pair.partition("=")
        if not (name and sign and column):
            raise ExperimentError(f"--columns {pair}: write NAME=COLUMN, as in y_true=gold")
        if name in columns:
            raise ExperimentError(f"--columns {pair}: {name} is read from {columns[name]!r} already")
        columns[name] = column
    try:
        params = json.loads(options.loss_params)
    except json.JSONDecodeError as error:
        raise ExperimentError(f"--loss-params is no JSON: {error}") from None
    if not isinstance(params, dict):
        raise ExperimentError("--loss-params must be a JSON object")
    human_cost, expert_cost = (
        None if given is None else _one(option, given, float)
        for option, given in (("--human-cost", options.human_cost), ("--expert-cost", options.expert_cost))
    )
    return read_table(
        options.file,
        columns=columns,
        models=_all("--models", options.models, int),
        costs=_all("--costs", options.costs, float),
        human_cost=human_cost,
        expert_cost=expert_cost,
        loss=options.loss,
        loss_params=params,
        loss_bound=_one("--loss-bound", options.loss_bound, float),
        blank=options.blank,
        p_column=options.p_column,
    )


def _settings(options: argparse.Namespace) -> Settings:
    if options.p is not None and options.p_column:
        raise ExperimentError(
            f"--p {options.p}: --p-column gives every item a probability of its own; leave one of the two out"
        )
    settings = Settings(
        epsilons=_all("--epsilon", options.epsilon, to_decimal) or (Decimal("0.05"),),
        alpha=_one("--alpha", options.alpha, to_decimal),
        sizes=_all("--m", options.m, int),
        p=Settings.p if options.p is None else _one("--p", options.p, to_decimal),
        repeats=options.repeats,
        seed=options.seed,
        targets=tuple(_split(options.target)),
        bounds=tuple(_split(options.bound)),
        rules=tuple(_split(options.rules)),
        severities=_all("--shift", options.shift, float),
        drift=_one("--drift", options.drift, float),
    )
    settings.check()
    return settings


def _split(values: Iterable[str]) -> list[str]:
    return [part for value in values for part in value.split(",") if part]


def _all(option: str, values: Iterable[str], kind: Callable[[str], T]) -> tuple[T, ...]:
    return tuple(_one(option, value, kind) for value in _split(values))


def _one(option: str, value: str, kind: Callable[[str], T]) -> T:
    try:
        return kind(value)
    except ValueError:
        whole = "whole number" if kind is int else "number"
        raise ExperimentError(f"{option} {value}: this is no {whole}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m routing.core.experiment``: 0, or 1 with a message."""
    parser = argparse.ArgumentParser(prog="python -m routing.core.experiment", description=DESCRIPTION)
    add_arguments(parser)
    try:
        with unread_output():
            execute(parser.parse_args(arguments), say=print)
    except (ExperimentError, TableError, UnknownNameError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
