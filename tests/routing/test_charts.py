"""Scales, ticks and places of the figures on a run's page."""

import itertools

import pytest

from routing.views.charts import (
    Axis,
    Chart,
    Guide,
    Series,
    Value,
    Words,
    as_number,
    in_percent,
    make_chart,
    round_ticks,
)
from routing.views.figure import region_figure

WORDS = Words(key="k", title="t", lead="l", head=["a"], rows=[["1"]])


def draw(x: Axis, y: Axis, *values: Value, guides: tuple[Guide, ...] = ()) -> Chart:
    return make_chart(WORDS, x, y, [Series("s", values)], guides)


UNIT = Axis("x", 0, 1, [0, 0.5, 1])


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.19, [0, 0.05, 0.1, 0.15, 0.2]),
        (260, [0, 100, 200, 300]),
        (7, [0, 2, 4, 6, 8]),
        (0.0004, [0, 0.0001, 0.0002, 0.0003, 0.0004]),
    ],
)
def test_ticks_are_few_round_and_reach_beyond(high, ticks):
    assert round_ticks(high) == ticks
    assert round_ticks(high)[-1] >= high


def test_ticks_go_below_zero_where_a_saving_is_a_loss():
    assert round_ticks(0.6, low=-0.3) == [-0.4, -0.2, 0, 0.2, 0.4, 0.6]


def test_places_run_from_left_to_right_and_from_below_upwards():
    chart = draw(UNIT, UNIT, Value(0, 0, "a"), Value(0.5, 0.5, "b"), Value(1, 1, "c"))
    first, middle, last = chart.lines[0].dots
    assert (first.x, first.y) == (chart.left, chart.bottom)
    assert (last.x, last.y) == (chart.right, chart.top)
    assert middle.x == pytest.approx((chart.left + chart.right) / 2, abs=0.1)
    assert chart.lines[0].path.startswith(f"M{first.x} {first.y}L")
    assert [dot.tip for dot in chart.lines[0].dots] == ["a", "b", "c"]


def test_what_lies_outside_is_drawn_at_the_edge_and_has_no_tick():
    x = Axis("x", 0, 1, [0, 1, 2])
    chart = draw(x, UNIT, Value(2, -1, "out"))
    assert (chart.lines[0].dots[0].x, chart.lines[0].dots[0].y) == (chart.right, chart.bottom)
    assert [tick.text for tick in chart.x_ticks] == ["0\N{NO-BREAK SPACE}%", "100\N{NO-BREAK SPACE}%"]


def test_equal_ratios_are_equally_far_apart():
    x = Axis("x", 0.01, 0.16, [], logarithmic=True)
    dots = draw(x, UNIT, *(Value(0.01 * 2**power, 0, "") for power in range(5))).lines[0].dots
    steps = [after.x - before.x for before, after in itertools.pairwise(dots)]
    assert steps == pytest.approx([steps[0]] * 4, abs=0.2)


def test_intervals_and_guides_are_lines():
    value = Value(0.5, 0.5, "", low=0.25, high=1)
    chart = draw(UNIT, UNIT, value, guides=(Guide("limit", (0, 0.5), (1, 0.5)),))
    middle = (chart.top + chart.bottom) / 2
    assert chart.lines[0].dots[0].reach.endswith(f"V{float(chart.top)}")
    assert chart.guides == [("limit", f"M{float(chart.left)} {middle}L{float(chart.right)} {middle}")]
    assert draw(UNIT, UNIT, Value(0, 0, "")).lines[0].dots[0].reach == ""


def test_a_pair_of_which_nothing_goes_to_the_second_model_lies_on_the_diagonal():
    scores = [-1.0, 0.1, 0.2, 0.3]
    cells = [[None if j < i else 8.0 for j in range(4)] for i in range(4)]
    region = {"u1": scores, "u2": scores, "feasible": [[True] * 4] * 4, "errors": cells, "cost": cells}
    pairs = [(None, None), (0.2, None), (0.2, 0.2), (0.1, 0.3)]
    policies = [
        {
            "index": index,
            "thresholds": [None if u is None else {"u": u, "v": 0} for u in pair],
            "observed_errors": 0,
            "certified": True,
        }
        for index, pair in enumerate(pairs)
    ]
    drawn = region_figure({"region": region, "chain": {"policies": policies}, "comparisons": []}, None, {})
    assert drawn is not None
    nothing, alone, both, apart = drawn.steps
    assert (alone.x, alone.y) == (both.x, both.y)
    assert nothing.x < apart.x < alone.x
    assert apart.y < alone.y < nothing.y


def test_values_are_said_as_shares_or_numbers():
    assert in_percent(0.05) == "5\N{NO-BREAK SPACE}%"
    assert as_number(1234.5678) == "1,235"
    assert as_number(0.03125) == "0.03125"
