"""`routing.core` as docs/experiment.md has it: its ten lines, its names, its errors."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import routing.core as core

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/experiment.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def table(size: int = 2_000) -> dict[str, Any]:
    """A model that errs on .3 u^2 of its answers; people say "yes"."""
    rng = np.random.default_rng(1)
    u = rng.random(size)
    wrong = rng.random(size) < 0.3 * u**2
    return {
        "items": [f"item-{place}" for place in range(size)],
        "u": u,
        "answers": [["no" if error else "yes"] for error in wrong],
        "ask": lambda item: "yes",
    }


def test_the_ten_lines_certify_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = EXAMPLE[0]
    assert len([line for line in lines.splitlines() if line and not line.startswith("from")]) <= 10
    (tmp_path / "example.py").write_text(lines, encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "example.py"), init_globals=table())
    found = names["found"]
    assert found.certified
    (threshold,) = found.thresholds
    kept = [(u, v) <= (threshold.u, threshold.v) for u, v in zip(names["u"], names["v"], strict=True)]
    wrong = sum(keep and answer == ["no"] for keep, answer in zip(kept, names["answers"], strict=True))
    assert 500 < sum(kept) < 2_000
    assert wrong < 0.1 * 2_000
    assert "At most 5 %" in capsys.readouterr().out


def test_ten_lines_certify_a_table_with_an_annotators_and_an_experts_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines, published = EXAMPLE
    assert len([line for line in lines.splitlines() if line and not line.startswith("from")]) <= 10
    (tmp_path / "example.py").write_text(lines + published, encoding="utf-8")
    rng = np.random.default_rng(3)
    known = table() | {"people": {f"item-{k}": "no" if rng.random() < 0.03 else "yes" for k in range(2_000)}}
    names = runpy.run_path(str(tmp_path / "example.py"), init_globals=known)
    found = names["found"]
    assert found.certified
    assert found.people.error.low < 0.03 < found.people.error.high
    printed = capsys.readouterr().out
    assert "what Eve would give, blind" in printed
    assert printed.endswith("[]\n"), "nothing differs"
    sources = found.sources(names["u"], names["v"])
    said = [
        (answer[0], known["people"][item])
        for answer, item in zip(known["answers"], known["items"], strict=True)
    ]
    given = [
        (model, person, person if person == model else "yes", "yes")[source]
        for source, (model, person) in zip(sources.tolist(), said, strict=True)
    ]
    assert 0 < given.count("no") < 0.1 * 2_000
    assert (sources == 3).sum() < 1_500


def test_the_page_names_what_the_library_has() -> None:
    assert set(core._HOME) == set(core.__all__) <= set(dir(core))
    for name in core.__all__:
        assert getattr(core, name) is not None
        assert f"`{name}`" in PAGE, name
    with pytest.raises(AttributeError, match="no attribute 'certificates'"):
        _ = core.certificates


def test_it_needs_no_django_and_reads_modules_when_they_are_used() -> None:
    code = (
        "import sys, routing.core as core; assert 'scipy' not in sys.modules;"
        "[getattr(core, name) for name in core.__all__];"
        "assert not {'django', 'annotation', 'routing.models'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def plan(**changes: Any) -> core.Plan:
    given = {"epsilon": "0.1", "alpha": "0.1", "target": "pool", "m": 60, "p": 1, "pool_size": 100}
    return core.Plan(**(given | {"costs": (1, 9)} | changes))


def calibrated(**changes: Any) -> core.Calibration:
    items = [f"i{place}" for place in range(100)]
    draw = core.draw_calibration(pool_size=100, m=60, p=1, entropy=3)
    columns: dict[str, Any] = {
        "items": items,
        "u": np.linspace(0, 1, 100),
        "v": core.tie_breaks(core.make_salt(3), items),
        "answers": [["a"]] * 100,
        "labels": dict.fromkeys(items, "a"),
    }
    return core.Calibration.of_pool(plan(), draw, **(columns | changes))


def test_columns_of_a_pool_become_the_rows_of_the_draw() -> None:
    calibration = calibrated(labels={f"i{place}": None if place % 2 else "a" for place in range(100)})
    draw = core.draw_calibration(pool_size=100, m=60, p=1, entropy=3)
    assert [row.position for row in calibration.rows] == draw.positions.tolist()
    assert calibration.rows[7].item_id == f"i{draw.positions[7]}"
    assert calibration.u.tolist() == np.linspace(0, 1, 100)[draw.positions].tolist()
    assert calibration.unanswered == sum(place % 2 for place in draw.positions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"u": np.linspace(0, 1, 99)}, "100 items, but there are 100 ids, 99 uncertainties"),
        ({"answers": []}, "0 rows of answers"),
        ({"labels": {}}, "asked about it, and it has no label"),
        ({"u": np.full(100, np.nan)}, "uncertainty nan is outside"),
        ({"answers": [["a", "b"]] * 100}, "2 answers for 1 models"),
        ({"items": ["same"] * 100, "labels": {"same": "a"}}, "drawn twice"),
    ],
)
def test_columns_that_do_not_fit_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(core.CalibrationError, match=words):
        calibrated(**changes)


def test_what_makes_no_plan_and_no_chain_is_refused_in_words() -> None:
    v = np.arange(100)
    with pytest.raises(core.PlanError, match="epsilon"):
        plan(epsilon="a lot")
    with pytest.raises(core.PlanError, match="offered as a comparison only"):
        core.certify_chains(plan(rule="pointwise_argmin"), (), calibrated())
    with pytest.raises(ValueError, match="cannot be drawn from a pool of 100"):
        core.draw_calibration(pool_size=100, m=101, p=1, entropy=1)
    for u in (np.full(100, np.nan), np.full(100, 1.5), np.zeros(99)):
        with pytest.raises(core.ChainError):
            core.build_chains(plan(), u=u, v=v)
