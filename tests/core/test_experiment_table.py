"""Tables of outputs: what can be read is read alike from CSV and Parquet, and what cannot is said by cell."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from routing.core.experiment.reading import read_table
from routing.core.experiment.table import RecordedLoss, Table, TableError

GOOD = (
    "item_id,text,y_true,pred1,conf1,pred2,conf2,cost1,cost2,cost_h\n"
    'a,"two\nlines, quoted",7,7,0.9,8,0.6,1,2,8\n'
    "b,x,5,,,5,0.8,1,2,8\n"
    "c,y,5,6,0.25,5,1,1.5,2,9\n"
)


def table_of(folder: Path, text: str, **options: object) -> Table:
    path = folder / "outputs.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, **options)


def test_a_table_is_read_cell_by_cell(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD)
    assert (table.name, table.size, table.numbers) == ("outputs", 3, (1, 2))
    assert table.loss.tolist() == [[0, 1], [1, 0], [1, 0]]
    # A blank score beside a blank answer: no certainty at all.
    assert table.u == pytest.approx(np.array([[0.1, 0.4], [1.0, 0.2], [0.75, 0.0]]))
    assert table.costs.tolist() == [[1, 2, 8], [1, 2, 8], [1.5, 2, 9]]
    assert table.scored == (True, True)
    assert table.costs_vary
    assert (table.loss_name, table.binary, table.loss_bound) == ("zero_one", True, 1.0)


def test_a_blank_answer_is_wrong_or_passes_the_item_on(tmp_path: Path) -> None:
    wrong = table_of(tmp_path, GOOD)
    assert wrong.usable.all()
    assert wrong.final_loss[1].tolist() == [1, 0, 0]
    assert wrong.answers is not None
    assert wrong.answers[1, 0] not in {"5", "", None}  # it disagrees with every answer
    passing = table_of(tmp_path, GOOD, blank="pass")
    assert passing.usable.tolist() == [[True, True], [False, True], [True, True]]
    assert passing.final_loss[1].tolist() == [0, 0, 0]
    assert passing.final[1].tolist() == [1, 1, 2]
    # Both attempts are paid.
    assert passing.path_cost[1].tolist() == [3, 2, 8]


def test_parquet_and_csv_are_the_same_table(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    plain = table_of(tmp_path, GOOD)
    columns = {
        "item_id": ["a", "b", "c"],
        "y_true": [7, 5, 5],
        "pred1": [7, None, 6],
        "conf1": [0.9, None, 0.25],
        "pred2": ["8", "5", "5"],
        "conf2": [0.6, 0.8, 1.0],
        "cost1": [1.0, 1.0, 1.5],
        "cost2": [2, 2, 2],
        "cost_h": [8, 8, 9],
    }
    parquet.write_table(pa.table(columns), tmp_path / "outputs.parquet")
    same = read_table(tmp_path / "outputs.parquet")
    for field in ("loss", "u", "costs"):
        assert np.array_equal(getattr(plain, field), getattr(same, field))


def test_whole_numbers_are_one_label_whether_a_parquet_column_holds_floats_or_not(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    # A missing cell has made floats of one column of labels.
    columns = {"y_true": [7, 5, 5], "pred1": [7.0, float("nan"), 5.5], "u1": [0.1, float("nan"), 0.75]}
    parquet.write_table(pa.table(columns), tmp_path / "outputs.parquet")
    table = read_table(tmp_path / "outputs.parquet", costs=(1,), human_cost=8, blank="pass")
    assert table.loss[:, 0].tolist() == [0, 1, 1]
    assert table.usable[:, 0].tolist() == [True, False, True]
    assert table.u[:, 0].tolist() == [0.1, 1.0, 0.75]


def test_two_columns_may_be_read_from_one(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, columns={"y_true": "pred2", "pred2": "pred2", "conf2": "conf2"})
    assert table.loss[:, 1].tolist() == [0, 0, 0]


def test_a_column_that_is_named_comes_before_another_that_is_there(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, columns={"u1": "conf2"}, models=(1,))
    assert table.u[:, 0].tolist() == [0.6, 0.8, 1.0]
    both = GOOD.replace("cost_h\n", "cost_h,off\n").replace("2,8\n", "2,8,1\n").replace("2,9\n", "2,9,0\n")
    table = table_of(tmp_path, both, columns={"loss1": "off", "u1": "conf2"}, models=(1,))
    assert table.loss[:, 0].tolist() == [1, 1, 0]


def test_a_column_that_is_read_under_another_name_has_given_up_its_own(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, columns={"pred1": "pred2", "conf1": "conf2"})
    assert table.numbers == (1,)
    assert table.loss[:, 0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("cell", [b"7", [7], {"a": 7}])
def test_parquet_cells_that_are_neither_texts_nor_numbers_are_refused(tmp_path: Path, cell: object) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"y_true": ["7"], "pred1": [cell], "u1": [0.1]}), tmp_path / "odd.parquet")
    with pytest.raises(TableError, match=r"odd\.parquet: column 'pred1' holds cells of type"):
        read_table(tmp_path / "odd.parquet", costs=(1,), human_cost=8)


def test_names_models_and_costs_can_be_given(tmp_path: Path) -> None:
    text = 'gold,small,score,pred3,u3\n1.0,1,0.2,2,0.5\n2,"1,000",0.4,2.0,0.1\n'
    table = table_of(
        tmp_path,
        text,
        columns={"y_true": "gold", "pred1": "small", "u1": "score"},
        models=(3, 1),
        costs=(0.1, 0.2),
        human_cost=5,
        loss="numeric",
    )
    assert table.numbers == (3, 1)
    assert table.loss.tolist() == [[1, 0], [0, 1]]
    assert table.u.tolist() == [[0.5, 0.2], [0.1, 0.4]]
    assert table.costs.tolist() == [[0.1, 0.2, 5]] * 2


def test_without_other_word_there_are_as_many_models_as_costs(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, costs=(0.5,))
    assert table.numbers == (1,)
    assert table.costs.tolist() == [[0.5, 8], [0.5, 8], [0.5, 9]]


def test_recorded_losses_keep_their_bound(tmp_path: Path) -> None:
    text = "loss1,u1\n0.5,0.1\n1.5,0.9\n"
    given = {"costs": (1,), "human_cost": 8}
    table = table_of(tmp_path, text, loss_bound=2.0, **given)
    assert (table.binary, table.loss_bound, table.answers) == (False, 2.0, None)
    counts = table_of(tmp_path, "loss1,u1\n0,0.1\n1,0.9\n", **given)
    assert (counts.binary, counts.loss_name) == (True, "zero_one")
    with pytest.raises(TableError, match=r"row 2, column 'loss1': '1.5' must be a number from 0 to 1"):
        table_of(tmp_path, text, **given)
    for bound in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TableError, match=r"--loss-bound .*: the largest loss must be a number above 0"):
            table_of(tmp_path, text, loss_bound=bound, **given)
    with pytest.raises(NotImplementedError, match="recorded"):
        RecordedLoss()("a", "b")


def test_probabilities_of_asking_come_from_a_column(tmp_path: Path) -> None:
    text = "y_true,pred1,u1,ask\n1,1,0.1,0.25\n1,2,0.9,1\n"
    table = table_of(tmp_path, text, costs=(1,), human_cost=8, p_column="ask")
    assert table.p is not None
    assert table.p.tolist() == [0.25, 1.0]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (GOOD.replace("0.6", "many"), {}, "row 1 (item 'a'), column 'conf2': 'many' is no number"),
        (
            GOOD.replace("0.25", "1.25"),
            {},
            "row 3 (item 'c'), column 'conf1': '1.25' must be a number from 0",
        ),
        (GOOD.replace("0.6", "nan"), {}, "row 1 (item 'a'), column 'conf2': 'nan' must be a number"),
        (
            GOOD.replace("0.6", ""),
            {},
            "row 1 (item 'a'), column 'conf2': the score is blank beside an answer",
        ),
        (GOOD.replace("1.5,2,9", "-1,2,9"), {}, "row 3 (item 'c'), column 'cost1': '-1' must be a number of"),
        (GOOD.replace("1.5,2,9", "1_5,2,9"), {}, "row 3 (item 'c'), column 'cost1': '1_5' is no number"),
        (GOOD, {"models": (1, 1)}, "--models: a model stands there twice"),
        (GOOD, {"columns": {"p": "conf2"}}, "there is no column 'p' to map 'conf2' to"),
        ("", {}, "outputs.csv: the first row is empty; it must name the columns"),
        ("\n" + GOOD, {}, "outputs.csv: the first row is empty; it must name the columns"),
        ("a" * 200_000, {}, "outputs.csv: the first row does not name columns"),
        (GOOD.replace("1.5,2,9", "1.5,,9"), {}, "row 3 (item 'c'), column 'cost2': the cell is blank"),
        (
            GOOD.replace("2,9", "2,0"),
            {},
            "row 3 (item 'c'), column 'cost_h': the cost of people must be above 0",
        ),
        (GOOD.replace("c,y,5", "c,y,"), {}, "row 3 (item 'c'), column 'y_true': the cell is blank"),
        (
            GOOD.replace("c,y", "a,y"),
            {},
            "row 3 (item 'a'), column 'item_id': the id stands in row 1 already",
        ),
        (
            GOOD.replace("c,y,5", "c,y,five"),
            {"loss": "numeric"},
            "row 3 (item 'c'), column 'y_true', with pred1",
        ),
        (GOOD.replace("c,y,5,6", "c,y,5"), {}, "row 3 has 9 cells, the header 10: 'c,y,5,0.25"),
        (GOOD.splitlines()[0] + "\n", {}, "there is a header, but no row"),
        (GOOD.replace("y_true", "truth"), {}, "there is no column 'y_true'"),
        (GOOD.replace("conf1", "c1"), {}, "there is no column 'conf1' or 'u1'"),
        (GOOD.replace("cost2", "price"), {}, "there is no column 'cost2'; give the costs with --costs"),
        (GOOD.replace("cost_h", "price"), {}, "there is no column 'cost_h'; give the cost with --human-cost"),
        (GOOD.replace("pred2", "loss2"), {}, "some models have predictions and some losses"),
        (GOOD.replace("pred1", "a").replace("pred2", "b"), {}, "there is no column pred1 or loss1"),
        (GOOD, {"models": (1, 4)}, "there is no column 'pred4' or 'loss4'"),
        (GOOD, {"costs": (1, 2, 3)}, "3 costs for 2 models"),
        (GOOD, {"costs": (1,), "models": (1, 2)}, "1 costs for 2 models"),
        (GOOD, {"human_cost": 0.0}, "--human-cost: the cost of people must be above 0"),
        (
            GOOD,
            {"columns": {"y_true": "gold"}},
            "there is no column 'gold', which 'y_true' should be read from",
        ),
        (GOOD, {"columns": {"truth": "text"}}, "there is no column 'truth' to map 'text' to"),
        (GOOD, {"loss": "nothing"}, "there is no loss 'nothing'"),
        (GOOD, {"blank": "skip"}, "'wrong' or 'pass', not 'skip'"),
        (GOOD, {"p_column": "cost2"}, "row 1 (item 'a'), column 'cost2': '2' must be a number from 0 to 1"),
        (GOOD.replace("conf2", "conf1"), {}, "two columns are called 'conf1'"),
        (GOOD, {"costs": (1, -2)}, "a cost must be a number of at least 0"),
        (
            GOOD.replace("5,1,1.5", "5,0,1.5"),
            {"p_column": "conf2"},
            "row 3 (item 'c'), column 'conf2': a probability of asking must be above 0",
        ),
    ],
)
def test_a_bad_table_is_refused_by_row_and_column(
    tmp_path: Path, text: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(TableError) as caught:
        table_of(tmp_path, text, **options)
    assert words in str(caught.value)


class OnlyTogether:
    """A loss that can compare one pair, but not two at once."""

    bound = 1.0
    binary = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0

    def many(self, labels: list[str], predictions: list[str]) -> np.ndarray:
        if len(labels) > 1:
            raise RuntimeError("too many")
        return np.zeros(len(labels))


def test_a_loss_that_fails_on_the_whole_column_is_said_without_a_row(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"outputs.csv: pred1: .*too many"):
        table_of(tmp_path, GOOD, loss=f"{__name__}:OnlyTogether")


def test_a_later_model_needs_no_score(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD.replace("conf2", "other"))
    assert table.scored == (True, False)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        read_table(tmp_path / "nothing.csv")
    (tmp_path / "latin.csv").write_bytes(b"item_id,y_true,pr\xe9d1\n")
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(tmp_path / "latin.csv")
    (tmp_path / "latin2.csv").write_bytes(b"y_true,pred1,conf1\ncaf\xe9,b,0.5\n")
    with pytest.raises(TableError, match=r"UTF8|UTF-8"):
        read_table(tmp_path / "latin2.csv")
    (tmp_path / "text.parquet").write_text("y_true,pred1\n")
    with pytest.raises(TableError, match="no Parquet file"):
        read_table(tmp_path / "text.parquet")


def test_a_part_of_the_models_is_a_table_of_its_own(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, blank="pass")
    second = table.only((1,))
    assert (second.numbers, second.models) == ((2,), 1)
    assert second.loss.tolist() == [[1], [0], [0]]
    assert second.costs.tolist() == [[2, 8], [2, 8], [2, 9]]
    assert table.only((1,)) is second
    assert table.only((0, 1)) is table
    # Without model 2 people step in for the answer that model 1 did not give.
    assert table.only((0,)).final[1].tolist() == [1, 1]
    assert table.only(()).final.tolist() == [[0], [0], [0]]


def test_a_header_that_is_none_is_refused_however_long_a_cell_may_be(tmp_path: Path) -> None:
    limit = csv.field_size_limit(1_000_000)
    try:
        with pytest.raises(TableError, match="the first row does not name columns"):
            table_of(tmp_path, "a" * 200_000)
    finally:
        csv.field_size_limit(limit)
