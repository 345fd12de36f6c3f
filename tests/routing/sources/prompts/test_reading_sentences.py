"""Labels and numbers in what models write around them: read where they are the answer, refused where not.

A wrong reading is worse than none: it would count as an error of the model.
"""

import pytest

from routing.sources.backends import TaskSpec
from routing.sources.prompts import read_answer

pytestmark = pytest.mark.costly


def labels(*names: str) -> TaskSpec:
    return TaskSpec("single_choice", tuple((name, name) for name in names))


SPAM, YES, MOODS = labels("spam", "ham"), labels("yes", "no"), labels("positive", "negative", "neutral")
LETTERS, TRUTH = labels("A", "B", "C", "D"), labels("true", "false", "half-true", "mostly true")
TOXIC, SCORES = labels("toxic", "non-toxic"), labels(*map(str, range(11)))
CITIES = TaskSpec("single_choice", (("A", "Paris"), ("B", "Rome"), ("D", "None of the above")))
STARS = TaskSpec("single_choice", tuple((str(stars), f"{stars} stars") for stars in range(1, 6)))
FEELINGS = TaskSpec("multiple_choice", tuple((name, name) for name in ("anger", "joy", "fear", "no emotion")))
NUMBER = TaskSpec("number")


@pytest.mark.parametrize(
    ("spec", "text", "key"),
    [
        (SPAM, "**Answer:** spam", "spam"),
        (SPAM, "Label: spam\nReason: it is not ham", "spam"),
        (SPAM, "Reason: it is not ham\nLabel: spam", "spam"),
        (SPAM, "Answer: spam\n\nExplanation: The answer is not ham because nobody knows the sender.", "spam"),
        (SPAM, "spam\n\nReason: it offers money", "spam"),
        (SPAM, "Sentiment: ham\nIt is a greeting.", "ham"),
        (SPAM, "### Answer\nham", "ham"),
        (SPAM, "<label>ham</label>", "ham"),
        (SPAM, "ham<|im_end|>", "ham"),
        (SPAM, "\\boxed{\\text{ham}}", "ham"),
        (SPAM, 'Here it is:\n```json\n{"label": "ham"}\n```', "ham"),
        (SPAM, '{"label": "ham", "confidence": 0.9}', "ham"),
        (SPAM, "Possible labels: spam, ham\nAnswer: ham", "ham"),
        (SPAM, "The correct label for this message is ham.", "ham"),
        (SPAM, "ham, because it is from a friend", "ham"),
        (SPAM, "Ham - it is a personal message", "ham"),
        (SPAM, "\u7b54\u6848\uff1aham", "ham"),
        (YES, "No, it does not.", "no"),
        (YES, "The answer is no.", "no"),
        (MOODS, "Sentiment: Positive \U0001f60a", "positive"),
        (MOODS, "The sentiment of this text is **negative**.", "negative"),
        (MOODS, "positive.\n\nLet me know if you need anything else!", "positive"),
        (LETTERS, "The correct answer is (B).", "B"),
        (LETTERS, "Option C is correct.", "C"),
        (LETTERS, "$\\boxed{\\textbf{(B)}}$", "B"),
        (LETTERS, "I'd pick 'C'.", "C"),
        (CITIES, "Rome, the capital of Italy", "B"),
        (CITIES, "B: Rome", "B"),
        (SCORES, '{"rating": 7}', "7"),
        (SCORES, "I give it a 7.", "7"),
        (TRUTH, "half true", "half-true"),
        (TOXIC, "The comment is non\u2011toxic.", "non-toxic"),
    ],
)
def test_a_label_is_read_out_of_what_stands_around_it(spec: TaskSpec, text: str, key: str) -> None:
    assert read_answer(text, spec).value == key


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        *((SPAM, text) for text in ("non-spam", "This is hardly spam.", "This is far from spam.")),
        *((SPAM, text) for text in ("I doubt this is spam.", "It is unlikely to be spam.", "Is it spam?")),
        *(
            (SPAM, text)
            for text in ("spam? no", "spam: false", "spam = no", "Spam it is not.", "It's spam, not.")
        ),
        *(
            (SPAM, text)
            for text in ("It would be wrong to call this spam.", "If it had a link, it would be spam.")
        ),
        *((SPAM, text) for text in ("I would call this spam, were it not for the sender.", "ham\nspam")),
        *(
            (SPAM, text)
            for text in ("Answer: spam\nWait, it is ham.", "Answer: spam\n\nham", "Answer: either\nspam")
        ),
        *((SPAM, text) for text in ('{"spam": true}', '{"reason": "It looks like spam", "is_spam": false}')),
        *(
            (SPAM, text)
            for text in ("Label: spam. Actually it's ham.", "spam\nActually, no.", "{'spam': 0.2}")
        ),
        *((YES, text) for text in ("There is no evidence that it does.", "I have no idea.", "No problem!")),
        *(
            (YES, text)
            for text in ("Answer: no information is given", "There are no cats.", "It has yes men.")
        ),
        *(
            (YES, text)
            for text in ("No clear answer can be given.", "It depends, no clear answer", "Yes and no.")
        ),
        *(
            (MOODS, text)
            for text in ("false positive", "It is less than positive", "lacks anything positive")
        ),
        *((MOODS, text) for text in ("positive\n\nneutral\n\nnegative", "positive | negative")),
        *(
            (LETTERS, text)
            for text in ("A, B", "A/B", "A-D", "\\boxed{A, B}", "Plan B", "U.S.A.", "Eliminate A.")
        ),
        *(
            (LETTERS, text)
            for text in ("The answer is not B.", "C++", "The grade is A+", "Answer: A is wrong, so B")
        ),
        (CITIES, "B: Paris"),
        *(
            (SCORES, text)
            for text in ("7/10", "7.5", "-7", "(-5)", ".5", "$5", "+5", "<5", "\u22655", "5%", "3-4")
        ),
        *(
            (SCORES, text)
            for text in ("I rate it 7,5.", "It is in chapter 5.", "1. It is bad\n2. It is long")
        ),
        *(
            (STARS, text)
            for text in ("4.5 stars", "3-4 stars", "14 stars", "-4 stars", "4/5 stars", "1 to 5 stars")
        ),
        *(
            (TRUTH, text)
            for text in ("mostly false", "partly true", "barely true", "true-ish", "It is almost true.")
        ),
        *((TOXIC, text) for text in ("anti-toxic", "It is un-toxic", "toxic-free", "free of toxic language")),
    ],
)
def test_a_label_that_is_not_clearly_the_answer_is_not_read(spec: TaskSpec, text: str) -> None:
    reading = read_answer(text, spec)
    assert reading.value is None
    assert reading.reason


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Labels:\n- anger\n- joy", ["anger", "joy"]),
        ("The answer is:\n1. anger\n2. joy\n", ["anger", "joy"]),
        ("Final answer:\nanger\njoy\n\nReason: they shout", ["anger", "joy"]),
        ("Labels: anger, joy\nReason: no fear", ["anger", "joy"]),
        ("The text shows these emotions.\n\n- anger\n- joy", ["anger", "joy"]),
        ("Anger fits.\nLabels: anger.\nNot joy.", ["anger"]),
        ('They are:\n```json\n["anger", "joy"]\n```', ["anger", "joy"]),
        ('It shows anger: ["joy"]', ["joy"]),
        ("* **anger**\n* **joy**", ["anger", "joy"]),
        ("[anger, joy]", ["anger", "joy"]),
        ("no emotion", ["no emotion"]),
        ("None of the labels apply.", []),
        ('["none"]', []),
    ],
)
def test_a_list_is_read_out_of_what_stands_around_it(text: str, keys: list[str]) -> None:
    assert read_answer(text, FEELINGS).value == keys


@pytest.mark.parametrize(
    "text",
    [
        *(
            "I think anger\njoy",
            "First it seems anger.\nOn reflection: joy\nfear",
            "anger or joy",
            "anger/joy",
        ),
        *(
            "neither anger nor joy",
            "no anger, joy",
            "Not anger, but joy",
            "anger: 0.9, joy: 0.1",
            "no emotions",
        ),
        *('{"anger": true, "joy": false}', '{"anger": 0.9}', '{"labels": null}', '["anger", null]'),
        "Labels:\n- anger (strong)\n- joy",
    ],
)
def test_labels_that_are_not_clearly_the_answer_are_not_read(text: str) -> None:
    reading = read_answer(text, FEELINGS)
    assert reading.value is None
    assert reading.reason


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The answer is \\boxed{42}.", "42"),
        ("1,234.50 USD", "1234.5"),
        ("**Answer: 42**", "42"),
        ("Answer: -$5", "-5"),
        ("Answer: 3 + 4 = 7", "7"),
        ("The answer is 12 \u00d7 12 = 144.", "144"),
        ("Answer: 2^{10} = 1024", "1024"),
        ("\\boxed{42^\\circ}", "42"),
        ("\\boxed{42\\text{ km}}", "42"),
        ("25 m^2", "25"),
        ("\uff0d5", "-5"),
        ("The product of 3 and 4 is 12 apples.", "12"),
        ("A total of 12.", "12"),
        ("Step 1: 3 apples.\nStep 2: 4 more.\nTotal: 7", "7"),
        ("Answer: 42\n\nNote: rounded to 2 decimals", "42"),
        ("42\n\nNote: rounded to 2 decimals", "42"),
        ("42 (rounded to 2 decimals)", "42"),
        ("42 [source 3]", "42"),
        ("Answer: 7 (not 8)", "7"),
        ('It is {"answer": 42, "confidence": 0.95}', "42"),
        ('```json\n{"answer": 42, "confidence": 0.95}\n```', "42"),
        ('{"answer": 0.1000000000000000000001}', "0.1000000000000000000001"),
        ("42<|im_end|>", "42"),
        ("Answer (in km): 12", "12"),
    ],
)
def test_a_number_is_read_out_of_what_stands_around_it(text: str, number: str) -> None:
    assert read_answer(text, NUMBER).value == number


@pytest.mark.parametrize(
    "text",
    [
        *(
            "5-7",
            "5 to 7",
            "between 5 and 7",
            "Answer: 5 or 6",
            "5\u00b11",
            "Answer: 2, 3",
            "[2, 3]",
            "10-5",
            "x - 5",
        ),
        *(
            "x = 2 or x = 3",
            "x = 2, y = 3",
            "2^10",
            "\\boxed{\\sqrt{2}}",
            "\\boxed{2\\pi}",
            "2\u03c0",
            "5\u00b2",
            "5x",
        ),
        *(
            "3/4",
            "\\frac{3}{4}",
            "1\u00bd",
            "3 1/2",
            "Answer: 5 million",
            "5k",
            "3 dozen",
            "1.5 \u00d7 10\u2076",
        ),
        *("minus 5", "negative 5", "- 5", "at least 7", "more than 7", "<7", "\u22647", "Answer: > 7"),
        *("12:30", "2024-05-01", "May 5, 2024", "555-1234", "Covid-19", "The 19th century", "0x1F", "1 : 3"),
        *(
            "Answer: not 8",
            "The answer is not 8 but 7.",
            "As of 2023, I cannot say.",
            "7 out of 10",
            "5 hours 30 min",
        ),
        *(
            "I need more information about the 2 trains.",
            "Answer: unknown\nThe text of 2020 says so.",
            "5 * 3",
        ),
        *(
            "Answer: the sum of 3 and 4, i.e. 7",
            "Answer:\n1. 42",
            '{"confidence": 0.9}',
            "It took 42 minutes on 3 May",
        ),
        *(
            "I count 3 apples. Then 4 more.",
            "Answer: 5\nSo the answer is 6.",
            "We add.\nCall me at 5 if in doubt",
        ),
    ],
)
def test_a_number_that_is_not_clearly_the_answer_is_not_read(text: str) -> None:
    reading = read_answer(text, NUMBER)
    assert reading.value is None
    assert reading.reason


@pytest.mark.parametrize(
    "piece", ["(", "1 is ", "= 1", "A: ", "the answer is ", "\\[", "so is it ", "{", "_*"]
)
def test_a_line_that_runs_away_is_read_in_a_moment(piece: str) -> None:
    """Patterns that go back and forth would take hours for these."""
    for length in (290, 1_900, 100_000):
        for spec in (SPAM, LETTERS, FEELINGS, NUMBER, TaskSpec("math"), TaskSpec("short_text")):
            reading = read_answer(piece * (length // len(piece)), spec)
            assert (reading.value is None) == bool(reading.reason)
