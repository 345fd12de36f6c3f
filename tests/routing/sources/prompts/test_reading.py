"""What is read out of the answers of models, by task type."""

import pytest
from hypothesis import given, strategies as st

from routing.sources.backends import TaskSpec
from routing.sources.prompts import read_answer, split_thinking

pytestmark = pytest.mark.costly

SPAM = TaskSpec("single_choice", (("spam", "Spam"), ("not spam", "Not spam"), ("u", "Cannot tell")))
LETTERS = TaskSpec("single_choice", (("A", "Paris"), ("B", "Rome"), ("C", "A")))
TOPICS = TaskSpec("multiple_choice", (("a", "arts, crafts"), ("s", "sport"), ("h", "home and garden")))
NUMBER, MATH = TaskSpec("number"), TaskSpec("math")
SHORT, LONG, CODE = TaskSpec("short_text"), TaskSpec("long_text"), TaskSpec("code")
TYPES = [SPAM, LETTERS, TOPICS, NUMBER, MATH, SHORT, LONG, CODE]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("spam", "spam"),
        ("Cannot tell", "u"),
        ("  NOT   SPAM.\n", "not spam"),
        ("**Spam**", "spam"),
        ("\u201cspam\u201d", "spam"),
        ("`spam`.", "spam"),
        ("Answer: not spam", "not spam"),
        ("The answer is **Spam**.", "spam"),
        ("It sells pills.\n\nFinal answer:\nspam", "spam"),
        ("First I took it for spam. Then I read on.\nnot spam", "not spam"),
        ('{"label": "spam"}', "spam"),
        ('{"why": "pills, not spam", "Label": "spam"}', "spam"),
        ('```json\n{"answer": "not spam"}\n```', "not spam"),
        ('["spam"]', "spam"),
        ('"spam"', "spam"),
        ("so \\boxed{spam}", "spam"),
        ("This message is clearly spam, I think.", "spam"),
        ("The message is not spam", "not spam"),
        ("<think>spam?</think>not spam", "not spam"),
        ("of course it is spam</think>\n\nnot spam", "not spam"),
    ],
)
def test_one_label_is_read(text: str, key: str) -> None:
    assert read_answer(text, SPAM).value == key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("<think>a</think>", "empty"),
        ("<think>It is spam", "thinking"),
        ("spam or not spam", "several"),
        ('["spam", "not spam"]', "several"),
        ("It isn't spam", "may say"),
        ("ham", "unknown label 'ham'"),
        ("antispam", "unknown"),
        ("{}", "no label"),
        ("spam " + "x" * 500, "does not end"),
        ("x" * 200_001, "characters"),
    ],
)
def test_an_answer_that_names_no_label_says_why(text: str, reason: str) -> None:
    reading = read_answer(text, SPAM)
    assert reading.value is None
    assert reason in reading.reason


@pytest.mark.parametrize(
    ("text", "key"),
    [("A", "A"), ("(B)", "B"), ("B) Rome", "B"), ("paris", "A"), ("C.", "C"), ("Answer: B", "B"), ("b", "B")],
)
def test_letters_are_read_as_labels(text: str, key: str) -> None:
    assert read_answer(text, LETTERS).value == key  # "A" is a key before it is the name of C


@pytest.mark.parametrize("text", ["A city in Italy", "A or B", "A) Rome"])
def test_a_letter_within_a_sentence_is_a_word(text: str) -> None:
    assert read_answer(text, LETTERS).value is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("sport", ["s"]),
        ("sport, arts, crafts", ["a", "s"]),
        ("home and garden; s", ["h", "s"]),
        ("Sport and home and garden.", ["h", "s"]),
        ("- sport\n- Arts, crafts", ["a", "s"]),
        ("1. a\n2. h", ["a", "h"]),
        ('["s", "a", "s"]', ["a", "s"]),
        ('{"labels": ["home and garden"]}', ["h"]),
        ("I see a ball.\nLabels: sport", ["s"]),
        ("[]", []),
        ("None.", []),
        ('{"labels": []}', []),
    ],
)
def test_several_labels_are_read(text: str, keys: list[str]) -> None:
    assert read_answer(text, TOPICS).value == keys


@pytest.mark.parametrize(
    ("text", "wrong"), [("sport, music", "music"), ('["s", "x"]', "x"), ("Labels: s, y", "y")]
)
def test_one_unknown_label_spoils_the_list(text: str, wrong: str) -> None:
    reading = read_answer(text, TOPICS)
    assert reading.value is None
    assert f"unknown label '{wrong}'" == reading.reason


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", "42"),
        ("-0.50", "-0.5"),
        ("\u22123", "-3"),
        ("3 + 4 = 7", "7"),
        ("x = -5", "-5"),
        ("The answer is 1,234.5 km.", "1234.5"),
        ("1 234", "1234"),
        ("1'234'567", "1234567"),
        ("about $12.50", "12.5"),
        ("12 %", "12"),
        ("2e3", "2000"),
        ("1.5 \u00d7 10^3", "1500"),
        ("1.2 \\times 10^{-2} m", "0.012"),
        ("\\boxed{1{,}234}", "1234"),
        ("... 12 pieces in 3 days\n#### 36", "36"),
        ("Answer: 3, because 1 + 2 = 3 and 4 is too many", "3"),
        ('{"answer": 4.0}', "4"),
        ('{"answer": "7"}', "7"),
        ("Answer:\n**8**", "8"),
        ("<think>5? 6? 7</think>8", "8"),
    ],
)
def test_a_number_is_read(text: str, number: str) -> None:
    assert read_answer(text, NUMBER).value == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("many", "no number"),
        ("3,5", "more than one way"),
        ("1.234,5", "more than one way"),
        ("1/2", "fraction"),
        ("\\boxed{\\frac{1}{2}}", "fraction"),
        ("9e9999", "more than one way"),
    ],
)
def test_a_number_that_is_not_sure_is_not_guessed(text: str, reason: str) -> None:
    reading = read_answer(text, NUMBER)
    assert reading.value is None
    assert reason in reading.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("so \\boxed{\\frac{1}{2}} and done", "\\frac{1}{2}"),
        ("\\boxed{1}, no: \\boxed{\\{2\\}}", "\\{2\\}"),
        ("Answer: $x^2$.", "x^2"),
        ("We get\n\\(3\\)", "3"),
        ("```\n5\n```", "5"),
        ('{"answer": "1/2"}', "1/2"),
        ("Thus\n\\[\nx = 5\n\\]", "x = 5"),
        ("The answer is 1/2, which is 0.5", "1/2"),
    ],
)
def test_mathematics_is_read(text: str, value: str) -> None:
    assert read_answer(text, MATH).value == value


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (SHORT, "Answer: **Rome**.", "Rome"),
        (SHORT, "**Answer:** Rome", "Rome"),
        (SHORT, "**Answer: Rome**", "Rome"),
        (SHORT, '"Rome"', "Rome"),
        (SHORT, '{"answer": "Rome"}', "Rome"),
        (SHORT, "<answer>Rome</answer>", "Rome"),
        (SHORT, "Rome<|im_end|>", "Rome"),
        (SHORT, "\\boxed{Rome}", "Rome"),
        (SHORT, "Answer: 42\n\nThe answer is based on the text.", "42"),
        (SHORT, 'Answer: "The label is red"', "The label is red"),
        (SHORT, "The middle class is shrinking", "The middle class is shrinking"),
        (SHORT, "So the answer is Rome.", "Rome"),
        (SHORT, "Washington, D.C.", "Washington, D.C."),
        (LONG, " Answer: a\n\nb ", "Answer: a\n\nb"),
        (CODE, "Here:\n```python\n  x = 1\n```\nUse:\n```\ny = 2\n```\n", "y = 2"),
        (CODE, "  x = 1\n", "x = 1"),
        (CODE, "~~~\nx = 1\n~~~", "x = 1"),
    ],
)
def test_text_and_code_are_read(spec: TaskSpec, text: str, value: str) -> None:
    assert read_answer(text, spec).value == value


@pytest.mark.parametrize("text", ["\\boxed{3", "\\boxed{}", "$$"])
def test_a_formula_that_was_cut_off_or_is_empty_is_not_used(text: str) -> None:
    assert read_answer(text, MATH).value is None


def test_an_empty_text_in_json_is_no_answer() -> None:
    assert read_answer('""', TOPICS).reason == "empty answer"


@pytest.mark.parametrize(
    "text", ["Answer:", "**Answer:** ", '{"reason": "unclear", "n": 1}', '{"answer": null}']
)
def test_a_short_text_that_is_not_there_is_not_used(text: str) -> None:
    assert read_answer(text, SHORT).value is None


def test_code_that_was_cut_off_is_not_used() -> None:
    assert read_answer("```python\nx = ", CODE).reason == "the code block has no end"


def test_a_text_beyond_its_limit_is_not_used() -> None:
    assert "more than 1,000 characters" in read_answer("a" * 1_001, SHORT).reason


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("yes", ("", "yes")),
        ("<think>a</think>b", ("a", "b")),
        ("a</think>b", ("a", "b")),
        ("<think>a", ("a", "")),
        ("<THINK>\n\n</THINK>\n\nb", ("", "b")),
        ("[THINK]a[/THINK]b", ("a", "b")),
        ("<think>a</think><think>b</think>c", ("ab", "c")),
        ("the tag <think> opens", ("", "the tag <think> opens")),
    ],
)
def test_thinking_is_kept_apart(text: str, parts: tuple[str, str]) -> None:
    assert split_thinking(text) == parts


PIECES = [
    *("<think>", "</think>", "```", "\\boxed{", "}", "{", "[", "]", '"', "Answer:", "spam", "not", "a", "\n"),
    *("=", "is", "(", ")", "ham", "A", "B", ":", "-", "$", "\\[", "label", "not "),
    *("1", ",", ".", "e9", "/", "s", "\0", "\ud800", "\u00e9", " and ", "|", "\\frac", "####", "**"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60))
def test_whatever_a_model_writes_is_read_or_refused_with_a_reason(text: str) -> None:
    for spec in TYPES:
        reading = read_answer(text, spec)
        assert (reading.value is None) == bool(reading.reason)
        if spec.choices and reading.value is not None:
            keys = {key for key, _ in spec.choices}
            assert keys.issuperset([reading.value] if isinstance(reading.value, str) else reading.value)


@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "answer" + " " * 1_000,
        "<think>",
        "\\boxed{",
        "1,",
        "1 ",
        "**",
        "```\n",
        "[",
        "a, ",
        "final ",
        "- \n",
        '"',
    ],
)
def test_an_answer_that_runs_away_is_read_in_a_moment(piece: str) -> None:
    """Patterns that go back and forth would take hours for these."""
    text = "answer" + piece * (100_000 // len(piece))
    for spec in TYPES:
        reading = read_answer(text, spec)
        assert (reading.value is None) == bool(reading.reason)


@given(st.text(max_size=40), st.sampled_from(["spam", "not spam", "u"]))
def test_what_was_thought_does_not_change_what_is_read(thought: str, key: str) -> None:
    if "<" not in thought and "[" not in thought:
        assert read_answer(f"<think>{thought}</think>{key}", SPAM).value == key
