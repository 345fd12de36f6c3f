"""Values of every task type in the one form in which they are stored."""

import json
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from annotation.common.value_reader import MISSING, ValueReader, as_text, reader_of
from annotation.task_types import TASK_TYPES
from testbed.factories import ChoiceSpec, make_project

pytestmark = pytest.mark.database

KEYS = {"a": "a", "b": "b", "Cat": "a", "A, B": "both", "both": "both", "x; y, z": "xyz", "10": "10"}
ONE, SEVERAL = ValueReader("single_choice", KEYS), ValueReader("multiple_choice", KEYS)
NUMBER = ValueReader("number")
TEXTS = ("math", "short_text", "long_text", "code")


def reason(read: tuple[Any, str]) -> str:
    value, why = read
    assert value is None
    assert why
    return why


@pytest.mark.parametrize(
    ("raw", "value"),
    [("a", "a"), ("Cat", "a"), (" Cat ", "a"), ("A, B", "both"), (10, "10"), (10.0, None), ("c", None),
     ("", None), ("  ", None), (None, None), (["a"], None), ({"a": 1}, None), (float("nan"), None),
     (True, None)],
)  # fmt: skip
def test_one_choice_is_its_key(raw, value):
    assert ONE(raw)[0] == value
    assert bool(ONE(raw)[1]) == (value is None)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (["b", "a"], ["a", "b"]),
        (["b", "Cat", "a"], ["a", "b"]),
        ([], []),
        ("[]", []),
        ('["b", "a"]', ["a", "b"]),
        ("[10]", ["10"]),
        ("b; a", ["a", "b"]),
        ("b,a", ["a", "b"]),
        ("b|a\nCat", ["a", "b"]),
        ("a; ; b;", ["a", "b"]),
        ("A, B", ["both"]),
        ("b, A, B", ["b", "both"]),
        ("x; y, z; A, B; a", ["a", "both", "xyz"]),
        ("a", ["a"]),
        (10, ["10"]),
    ],
)
def test_several_choices_are_a_sorted_list_of_keys(raw, value):
    assert SEVERAL(raw) == (value, "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("", MISSING),
        (None, MISSING),
        (" ;, ", MISSING),
        ("a; c", "unknown label 'c'"),
        (["a", "c"], "unknown label 'c'"),
        (["a", ["b"]], "no label"),
        ({"a": 1}, "in place of a list"),
        ("[" * 100_000, "unknown label"),
    ],
)
def test_what_is_no_list_of_choices_is_told(raw, words):
    assert words in reason(SEVERAL(raw))


class Counted(dict[str, str]):
    """Keys that count how often they are asked, and for how many characters."""

    asked = characters = 0

    def get(self, text, default=None):
        self.asked += 1
        self.characters += len(text)
        return super().get(text, default)


@pytest.mark.parametrize(
    "label", ["b" + ";" * 90, "z;" * 45 + "q"], ids=["other beginning", "same beginning"]
)
@pytest.mark.parametrize("answer", ["z;" * 450_000, "b;" * 450_000, "z;" * 500, "[" + "1," * 500_000 + "1]"])
def test_a_label_of_separators_and_a_long_answer_are_little_work(label, answer):
    keys = Counted({"a": "a", "b": "b", "z": "z", label: "k"})
    assert reason(ValueReader("multiple_choice", keys)(answer))
    assert keys.asked < 5_000
    assert keys.characters <= 2 * len(answer) + 5_000 * 91  # the whole answer once, as it is and stripped


def test_labels_of_separators_are_read_beside_others():
    reader = ValueReader("multiple_choice", {"a": "a", "b": "b", "b;;": "c", "a; b; x": "d"})
    assert reader("a; b; x;b;;;a") == (["a", "c", "d"], "")
    assert reader(" b;; ,a; b") == (["a", "b", "c"], "")


def test_a_list_of_all_spellings_is_read_however_it_is_written():
    keys = {f"{number}{'ä' * 90}": str(number) for number in range(50)}
    reader = ValueReader("multiple_choice", keys)
    assert reader(json.dumps(list(keys))) == reader("; ".join(keys)) == (sorted(keys.values()), "")


def test_heaps_of_accents_are_refused_before_they_are_put_in_order(monkeypatch):
    heap = "a" + "\u0301\u0327" * 60
    monkeypatch.setattr(
        unicodedata, "normalize", lambda form, text: pytest.fail("normalised") if text == heap else text
    )
    for task_type in TEXTS:
        assert "accents" in reason(ValueReader(task_type)(heap))


def test_letters_with_many_accents_are_read():
    assert ValueReader("short_text")("a" + "\u0301" * 30)[0] == "á" + "\u0301" * 29


@pytest.mark.parametrize(
    ("raw", "value"),
    [("42", "42"), (" 42 ", "42"), ("+42.0", "42"), ("042", "42"), ("-0.50", "-0.5"), (".5", "0.5"),
     ("5.", "5"), ("-0", "0"), ("-0.000", "0"), ("1e3", "1000"), ("1.5E-3", "0.0015"),
     ("1,234,567.80", "1234567.8"), ("\N{MINUS SIGN}3", "-3"), ("\N{FULLWIDTH DIGIT FOUR}2", "42"),
     (42, "42"), (-0.1, "-0.1"), (1e-7, "0.0000001"), (Decimal("1E+2"), "100"), (Decimal("-0.50"), "-0.5"),
     (10**150, "1" + "0" * 150)],
)  # fmt: skip
def test_a_number_is_written_in_one_way(raw, value):
    assert NUMBER(raw) == (value, "")


@pytest.mark.parametrize(
    "raw",
    ["", "x", "1,5", "1,23,456", "12,34", "1 000", "1.2.3", "50%", "$5", "1/2", "10²", "½", "٤٢", "0x10",
     "1e9999", "--1", "1e300", "9" * 201, "nan", "inf", float("inf"), Decimal("sNaN"), True, [1], 10**300,
     "1\0"],
)  # fmt: skip
def test_what_is_no_plain_number_is_refused(raw):
    assert reason(NUMBER(raw))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_a_number_keeps_its_value_whatever_its_spelling(number):
    for spelling in (str(number), f"{number:f}", f"{number:,f}", f"{number:e}"):
        value, why = NUMBER(spelling)
        assert not why
        assert Decimal(value) == number
        assert NUMBER(value) == (value, "")


@pytest.mark.parametrize("task_type", TEXTS)
def test_text_is_stripped_and_in_one_normal_form(task_type):
    read = ValueReader(task_type)
    assert read(" \ne\u0301t\u00e9 \n") == ("\u00e9t\u00e9", "")
    assert read(12) == ("12", "")
    for raw in ("", " \r\n\t ", None):
        assert reason(read(raw)) == MISSING
    assert "cannot be stored" in reason(read("a\0b"))
    assert "cannot be stored" in reason(read("a\ud800"))
    most = TASK_TYPES[task_type].max_characters
    assert read("x" * most)[0]
    assert f"{most:,}" in reason(read("x" * (most + 1)))
    assert "a list" in reason(read(["x"]))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (" mesh/e\u0301.obj\r\n", "mesh/e\u0301.obj"),
        ('{"b": 1,\r\n "a": [2, 0.50]}', '{"a":[2,0.5],"b":1}'),
        ({"b": 1, "a": [2, 0.5]}, '{"a":[2,0.5],"b":1}'),
        ('{"b": 1, "b": 2}', '{"b": 1, "b": 2}'),
        ('{"b": NaN}', '{"b": NaN}'),
        ("[1e999 ]", "[1e999 ]"),
        ("{part 7} ", "{part 7}"),
        ("[" * 90_000, "[" * 90_000),
        ({"b": [0.5, None], "a": "\u00e9"}, '{"a":"\u00e9","b":[0.5,null]}'),
        ([], "[]"),
        (True, "true"),
    ],
)
def test_what_nothing_here_compares_is_kept_as_it_is_and_json_has_one_spelling_typed_or_sent(raw, value):
    assert ValueReader("opaque")(raw) == (value, "")


def test_opaque_values_that_cannot_be_stored_are_refused():
    read = ValueReader("opaque")
    assert "cannot be stored" in reason(read("a\0b"))
    assert "cannot be stored" in reason(read({"a": "\ud800"}))
    assert "cannot be stored" in reason(read('{"a": "\\ud800"}'))
    assert "no JSON" in reason(read({"a": float("nan")}))
    assert "100,000" in reason(read({"a": 100_000 * "x"}))
    assert reason(read(" \n")) == MISSING


def test_line_ends_are_those_of_unix_and_code_keeps_its_indentation():
    assert ValueReader("long_text")("a\r\nb\rc") == ("a\nb\nc", "")
    assert ValueReader("code")("\r\n \n    if x:\r\n        y \n\n") == ("    if x:\n        y", "")


@pytest.mark.parametrize("raw", ["$$", "\\boxed{}", "( )", "$ $"])
def test_an_empty_formula_is_no_answer(raw):
    assert reason(ValueReader("math")(raw)) == "no formula in it"
    assert ValueReader("math")("x\n + 1") == ("x + 1", "")


@given(
    st.sampled_from(["single_choice", "multiple_choice", "number", "opaque", *TEXTS]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    ),
)
def test_whatever_is_given_the_value_is_stable_and_can_be_stored(task_type, raw):
    read = ValueReader(task_type, KEYS if task_type.endswith("choice") else {})
    value, why = read(raw)
    if value is None:
        assert why
        return
    assert why == ""
    assert read(value) == (value, "")
    assert TASK_TYPES[task_type].from_text(as_text(value)) == value
    assert json.loads(json.dumps(value)) == value
    as_text(value).encode()
    as_it_is = task_type == "opaque" or task_type.endswith("choice")
    assert unicodedata.is_normalized("NFC", as_text(value)) or as_it_is


@pytest.mark.django_db
class TestReaderOf:
    def test_a_key_goes_before_a_name_in_two_queries(self, django_assert_num_queries):
        """Of the labels, and of those that were merged into others."""
        project = make_project(choices=[ChoiceSpec("cat", key="1"), ChoiceSpec("1", key="2")])
        with django_assert_num_queries(2):
            read = reader_of(project)
        assert [read(raw)[0] for raw in ("1", "2", "cat")] == ["1", "2", "1"]

    def test_a_name_that_two_choices_have_names_neither(self):
        project = make_project(choices=("cat", "dog"))
        project.choices.filter(key="dog").update(name="cat")
        assert reader_of(project)("cat") == ("cat", "")
        project.choices.update(name="bird")
        assert reason(reader_of(project)("bird"))

    def test_without_choices_nothing_is_asked(self, django_assert_num_queries):
        project = make_project(choices=(), task_type="number")
        with django_assert_num_queries(0):
            assert reader_of(project)("1,000") == ("1000", "")


def test_the_end_of_a_line_that_is_far_away_is_no_answer():
    kind = TASK_TYPES["number"]
    assert kind.parse("well, " * 300 + "so it is 7.", ()).value == "7"
    assert kind.parse("well, " * 500 + "so it is 7.", ()).value is None
