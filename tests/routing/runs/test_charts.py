"""The figures of a run's page as data: what is drawn, what a reader is told, and the tables."""

import json

import pytest

from routing.common.figures import Axis, Figure, Point, Series, as_number, in_percent
from routing.runs.charts import run_charts
from routing.runs.queries import RunReport, run_report
from routing.runs.threshold_figure import region_figure
from testbed.worlds import make_world


def figure_of(*series: Series) -> Figure:
    return Figure(
        key="k", title="t", lead="l", x=Axis("x"), y=Axis("y"), series=series, head=["a"], rows=[["1"]]
    )


def test_a_series_without_points_is_not_drawn_and_the_rest_is_plain_data():
    drawn = figure_of(Series("none", []), Series("some", [Point(0, 0.5, "half", low=0.25, high=1)])).data
    assert [one["name"] for one in drawn["series"]] == ["some"]
    assert json.loads(json.dumps(drawn))["series"][0]["points"] == [
        {"x": 0, "y": 0.5, "tip": "half", "chosen": False, "low": 0.25, "high": 1}
    ]


def stored_region(pairs) -> dict:
    scores = [-1.0, 0.1, 0.2, 0.3]
    cells = [[None if j < i else 8.0 for j in range(4)] for i in range(4)]
    feasible = [[j < 3 for j in range(4)] for _ in range(4)]
    region = {"u1": scores, "u2": scores, "feasible": feasible, "errors": cells, "cost": cells}
    policies = [
        {
            "index": index,
            "thresholds": [None if u is None else {"u": u, "v": 0} for u in pair],
            "observed_errors": 0,
            "certified": True,
        }
        for index, pair in enumerate(pairs)
    ]
    return {"region": region, "chain": {"policies": policies}, "comparisons": []}


def series_of(figure: Figure, look: str) -> Series:
    return next(one for one in figure.series if one.look == look)


def test_a_pair_of_which_nothing_goes_to_the_second_model_lies_on_the_diagonal():
    drawn = region_figure(
        stored_region([(None, None), (0.2, None), (0.2, 0.2), (0.1, 0.3)]), None, {}, ["Small", "Large"]
    )
    assert drawn is not None
    nothing, alone, both, apart = series_of(drawn, "chain").points
    assert (alone.x, alone.y) == (both.x, both.y)
    assert nothing.x < apart.x < alone.x
    assert apart.y > alone.y > nothing.y


def test_each_pair_is_a_cell_once_and_the_table_names_the_largest_that_passes():
    drawn = region_figure(stored_region([(None, None)]), None, {}, ["Small", "Large"])
    assert drawn is not None
    passes, fails = series_of(drawn, "passes").points, series_of(drawn, "fails").points
    places = [(point.x, point.y) for point in (*passes, *fails)]
    assert sorted(places) == [(x, y) for x in range(4) for y in range(x, 4)]
    assert {point.y for point in fails} == {3}
    assert drawn.rows[0] == ["none", "0.2", "8", "0\N{NO-BREAK SPACE}%"]
    assert drawn.rows[3] == ["0.3", "–", "–", "–"]
    assert drawn.x.labels == ["none", "0.1", "0.2", "0.3"]


@pytest.fixture
def report(db) -> RunReport:
    return run_report(make_world(200).analysed(m=120))


def test_the_line_figures_hold_what_their_tables_hold(report):
    risk, savings, reliability = run_charts(report)
    upper, observed, epsilon = risk.series
    assert [point.y for point in upper.points] == [row.upper_bound for row in report.chain]
    assert [point.y for point in observed.points] == [row.estimate for row in report.chain]
    assert [point.y for point in epsilon.points] == [0.1, 0.1]
    assert [point.chosen for point in upper.points].count(True) == 1
    assert len(risk.rows) == len(upper.points)
    assert risk.x.unit == "whole"

    own = next(one for one in savings.series if one.name == "this run's rule")
    assert [point.x for point in own.points if point.chosen] == [0.1]
    assert savings.x.logarithmic
    assert 0.1 in savings.x.marks
    assert savings.x.low == own.points[0].x

    assert [one.name for one in reliability.series] == ["Model 1", "Model 2", "as sure as right"]
    for point in reliability.series[0].points:
        assert point.low is not None
        assert point.high is not None
        assert point.low <= point.y <= point.high
    assert len(reliability.rows) == sum(len(one.bins) for one in report.reliability)


def test_values_are_said_as_shares_or_numbers():
    assert in_percent(0.05) == "5\N{NO-BREAK SPACE}%"
    assert as_number(1234.5678) == "1,235"
    assert as_number(0.03125) == "0.03125"
