"""The command: what it writes, what it says, and that Django adds nothing to it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from routing.core.console import UNREAD
from routing.core.experiment.cli import main
from routing.core.experiment.methods import METHODS
from routing.core.experiment.plots import against_epsilon, feasible_region_figure
from routing.core.experiment.run import run
from routing.core.experiment.settings import Settings
from routing.core.experiment.table import People
from tests.core.tables import made_up, write_csv

pytestmark = pytest.mark.costly

ROOT = Path(__file__).parents[2]
VERSION_1 = [Path(__file__).parent / "data" / name for name in ("certificate-v1.json", "draw-v1.jsonl")]

KEYS = {
    "rule",
    "target",
    "bound",
    "epsilon",
    "alpha",
    "m",
    "p",
    "repeats",
    "error_mean",
    "error_sd",
    "violation_rate",
    "violation_low",
    "violation_high",
    "routing_saving_mean",
    "routing_saving_sd",
    "net_saving_mean",
    "human_labels_mean",
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(write_csv(tmp_path / "outputs.csv", made_up(300)))


def test_the_rows_are_written_as_json_csv_and_markdown(file: str, tmp_path: Path, capfd) -> None:
    out = tmp_path / "deep"
    arguments = ["--epsilon", "0.1,0.2", "--m", "100", "--repeats", "3", "--rules", "fixed_sequence", "cse"]
    files = ["--json", f"{out}/rows.json", "--csv", f"{out}/rows.csv", "--markdown", f"{out}/rows.md"]
    assert main([file, *arguments, *files]) == 0
    printed = capfd.readouterr().out
    rows = json.loads((out / "rows.json").read_text())
    assert [(row["rule"], row["epsilon"]) for row in rows] == [
        ("fixed_sequence", 0.1),
        ("fixed_sequence", 0.2),
        ("cse", 0.1),
        ("cse", 0.2),
    ]
    assert all(set(row) >= KEYS for row in rows)
    assert rows[0]["violation_low"] <= rows[0]["violation_rate"] <= rows[0]["violation_high"]
    table = list(csv.DictReader(io.StringIO((out / "rows.csv").read_text())))
    assert [float(row["error_mean"]) for row in table] == [row["error_mean"] for row in rows]
    markdown = (out / "rows.md").read_text()
    assert markdown in printed
    assert "m 100, N 300, alpha 0.05, p 0.9, 3 repeats, seed 0" in markdown
    assert f"| 0.1 | fixed_sequence | hypergeometric | {100 * rows[0]['error_mean']:.2f} (" in markdown
    assert "cse *" in markdown
    bound = 100 * rows[0]["test_bound"]
    assert f"finite test sets, in per cent: {bound:.2f} (ε = 0.1, m = 100), " in markdown
    assert "below with probability 0.9." in markdown


def test_what_is_left_out_is_said_once(file: str, capfd) -> None:
    arguments = ["--bound", "hypergeometric,binomial", "--rules", "fixed_sequence", "--repeats", "1"]
    assert main([file, *arguments, "--m", "100,120"]) == 0
    assert capfd.readouterr().out.count("use 'hypergeometric'") == 1
    both = [file, "--bound", "hypergeometric,clt", "--rules", "fixed_sequence,multi_chain", "--repeats", "1"]
    assert main(both) == 0
    assert "Left out: fixed_sequence, multi_chain: the bound 'clt' " in capfd.readouterr().out


def test_a_shift_is_measured_for_the_population_and_stars_every_rule(
    file: str, tmp_path: Path, capfd
) -> None:
    arguments = [file, "--m", "80", "--repeats", "2", "--rules", "fixed_sequence", "--drift", "0.5"]
    assert main([*arguments, "--shift", "0,1", "--json", str(tmp_path / "rows.json")]) == 0
    printed = capfd.readouterr().out
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["target"], row["severity"], row["holds_level"]) for row in rows] == [
        ("population", 0.0, True),
        ("population", 1.0, False),
    ]
    assert "| 1 | fixed_sequence * |" in printed
    assert "| 0 | fixed_sequence |" in printed
    assert "No certificate covers a shifted deployment" in printed
    assert main([*arguments, "--shift", "0"]) == 0
    assert "No certificate" not in capfd.readouterr().out


def test_a_file_with_other_separators_is_recognised(file: str, capfd) -> None:
    path = Path(file)
    path.write_text(path.read_text().replace(",", ";"))
    assert main([file]) == 1
    assert "outputs.csv: its columns seem to be separated by semicolons" in capfd.readouterr().err


def test_a_reader_that_leaves_early_gets_no_traceback(file: str) -> None:
    arguments = ["--m", "50", "--repeats", "1", "--rules", "people_only,fixed_sequence"]
    for command in (
        [sys.executable, "-m", "routing.core.experiment", file, *arguments],
        [sys.executable, "manage.py", "experiment", file, *arguments],
        [sys.executable, "-m", "routing.core.verify", *map(str, VERSION_1)],
    ):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            said = process.stderr.read().decode()
        assert "Traceback" not in said
        assert "BrokenPipe" not in said
        assert process.returncode == UNREAD


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "many"], "--epsilon many: this is no number"),
        (["--m", "10.5"], "--m 10.5: this is no whole number"),
        (["--columns", "y_true"], "--columns y_true: write NAME=COLUMN"),
        (["--columns", "u1=a,u1=b"], "--columns u1=b: u1 is read from 'a' already"),
        (["--loss-params", "{"], "--loss-params is no JSON"),
        (["--loss-params", "[1]"], "--loss-params must be a JSON object"),
        (["--rules", "magic"], "there is no rule 'magic'; choose one of: every_score"),
        (["--bound", "magic", "--rules", "pointwise_argmin"], "there is no bound 'magic'"),
        (["--bound", "clt", "--rules", "fixed_sequence"], "nothing that was asked for can be run"),
        (["--loss", "numeric"], "row 1 (item 'item-0'), column 'y_true', with pred1"),
        (["--p", "0.9", "--p-column", "conf1"], "--p 0.9: --p-column gives every item a probability of its"),
        (["--target", "population,dataset", "--shift", "1"], "use population or pool"),
        (["--human-cost", "1e300", "--m", "50"], "costs: 1E+300 is too large or too small"),
        (["--epsilon", "0.05,1e-400", "--m", "50"], "epsilon: 1E-400 is too large or too small"),
        (["--json", "/dev/null/rows.json", "--m", "50"], "/dev/null/rows.json cannot be written"),
        (["--plots", "/dev/null/figures", "--m", "50"], "/dev/null/figures cannot be written"),
    ],
)
def test_a_wrong_command_ends_with_one_sentence(file: str, arguments: list[str], words: str, capfd) -> None:
    assert main([file, "--repeats", "1", "--quiet", *arguments]) == 1
    assert words in capfd.readouterr().err


def test_a_path_that_cannot_be_written_is_refused_before_the_first_draw(
    file: str, tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routing.core.experiment.cli.run", lambda *_, **__: pytest.fail("it ran"))
    assert main([file, "--m", "50", "--csv", str(tmp_path)]) == 1
    assert "cannot be written: it is a folder" in capfd.readouterr().err


def test_the_theorem_on_finite_test_sets_is_stated_where_it_holds(file: str, capfd) -> None:
    arguments = [file, "--m", "50", "--repeats", "1", "--rules", "fixed_sequence"]
    for more, stated in (([], 1), (["--shift", "0,1"], 1), (["--shift", "1"], 0), (["--alpha", "0.6"], 0)):
        assert main([*arguments, *more]) == 0
        assert capfd.readouterr().out.count("theorem on finite test sets") == stated


def test_figures_are_drawn_where_they_have_something_to_show(file: str, tmp_path: Path) -> None:
    several = ["--epsilon", "0.1,0.2", "--m", "80,100", "--bound", "hypergeometric,hoeffding_bentkus"]
    shared = ["--repeats", "2", "--rules", "fixed_sequence,pointwise_argmin", "--quiet"]
    assert main([file, *several, *shared, "--plots", str(tmp_path / "a")]) == 0
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        "error-saving-dataset.png",
        "saving-m-dataset.png",
        "bounds-dataset.png",
        "reliability.png",
        "region.png",
    }
    shifted = ["--m", "80", "--shift", "0,1", "--drift", "0.5", "--markdown", str(tmp_path / "shift.md")]
    assert main([file, *shifted, *shared, "--plots", str(tmp_path / "b")]) == 0
    assert "drift 0.5" in (tmp_path / "shift.md").read_text()
    assert {path.name for path in (tmp_path / "b").iterdir()} == {
        "shift-population.png",
        "reliability.png",
        "region.png",
    }
    for path in (*(tmp_path / "a").iterdir(), *(tmp_path / "b").iterdir()):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 5_000


def test_every_rule_has_a_look_of_its_own_and_certifying_ones_are_drawn_through() -> None:
    settings = Settings(epsilons=(Decimal("0.1"), Decimal("0.2")), sizes=(80,), repeats=1)
    table = made_up(200)
    people = People(loss=np.zeros(200), models=table.loss, expert_cost=3 * table.costs[:, -1])
    rows = run(replace(table, people=people), settings).rows
    lines = [line for line in against_epsilon(rows).axes[0].lines if line.get_label() in METHODS.names()]
    assert len(lines) == len(METHODS.names()) == len({line.get_color() for line in lines})
    assert len(lines) == len({line.get_marker() for line in lines})
    holding = {row.rule for row in rows if row.holds_level}
    assert {line.get_label() for line in lines if line.get_linestyle() == "-"} == holding


def test_the_cells_of_the_region_leave_no_gap() -> None:
    table = made_up(300)
    (axes,) = feasible_region_figure(table, Settings(sizes=(150,))).axes
    corners = axes.collections[0].get_coordinates()
    assert corners[0, 0].tolist() == [0, 0]
    assert corners[-1, -1].tolist() == pytest.approx([1, 1])
    assert (np.diff(corners[0, :, 0]) >= 0).all()
    assert (np.diff(corners[:, 0, 1]) >= 0).all()
    shown = axes.collections[0].get_array()
    assert (shown == 0).sum() > 5
    assert (shown == 1).sum() > 5


def test_manage_py_and_python_m_write_the_same_rows(file: str, tmp_path: Path) -> None:
    arguments = ["--m", "100", "--repeats", "2", "--rules", "fixed_sequence,coannotating", "--quiet"]
    call_command(
        "experiment", file, *arguments, "--json", str(tmp_path / "django.json"), stdout=io.StringIO()
    )
    command = [sys.executable, "-m", "routing.core.experiment", file, *arguments]
    subprocess.run([*command, "--json", str(tmp_path / "plain.json")], cwd=ROOT, check=True)
    assert (tmp_path / "django.json").read_bytes() == (tmp_path / "plain.json").read_bytes()
    with pytest.raises(CommandError, match=r"outputs.csv: there is no column 'gold'"):
        call_command("experiment", file, "--columns", "y_true=gold")


def test_heavy_libraries_are_not_imported_before_they_are_needed() -> None:
    script = (
        "import sys, routing.core.experiment.cli, routing.core.experiment.plots\n"
        "assert not {'matplotlib', 'pyarrow', 'tqdm', 'django'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
