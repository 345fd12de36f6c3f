"""What the statistical core says of its choices, in the language of the reader.

The core knows no Django. Its titles and summaries stand here once more, where they are found for translation;
tests/test_translations.py compares the two.
"""

from django.utils.translation import gettext, gettext_noop

WORDS = (
    gettext_noop("The delivered data set"),
    gettext_noop(
        "The share of labels in the file that is delivered which differ from what a person would give. "
        "Every label by people in it counts as right: for one finished data set."
    ),
    gettext_noop("The pool, without the calibration labels"),
    gettext_noop(
        "The share of labels that differ from what a person would give, as if nobody had labelled the "
        "calibration set: for comparing thresholds, or where those labels are to be left out."
    ),
    gettext_noop("New items from the same source"),
    gettext_noop(
        "The probability that a new item from the same source gets a label that differs from what a "
        "person would give: for thresholds that will be used on items that arrive later."
    ),
    gettext_noop("One chain"),
    gettext_noop("Several chains"),
    gettext_noop("Chain learnt from labels"),
    gettext_noop("The paper's rule: cheapest feasible pair"),
    gettext_noop("The rule of the paper's proof: largest thresholds"),
    gettext_noop("Exact count in a finite pool"),
    gettext_noop(
        "Exact, with the fewest labels, where a label is right or wrong and one finished set is delivered."
    ),
    gettext_noop("Exact count for new items"),
    gettext_noop("Exact, with the fewest labels, where a label is right or wrong and new items will follow."),
    gettext_noop("Betting bound"),
    gettext_noop(
        "The usual choice where a label can be more or less wrong, as with a distance between numbers."
    ),
    gettext_noop("Hoeffding-Bentkus bound"),
    gettext_noop(
        "Safe for every loss; best with few labels, or where some items are asked about more often."
    ),
    gettext_noop("Empirical Bernstein bound"),
    gettext_noop("Safe for new items and every loss, but it needs more labels than the betting bound."),
    gettext_noop("Hoeffding's bound"),
    gettext_noop("Safe for everything and simple to explain, but it needs the most labels."),
    gettext_noop("Two-sided betting bound of the paper"),
    gettext_noop("For reproducing the paper only; the one-sided betting bound needs fewer labels."),
    gettext_noop("Normal approximation of the paper"),
    gettext_noop("For comparison with the paper only: it passes bad thresholds more often than it says."),
    gettext_noop("A label is right or wrong: the two must be the same, character by character."),
    gettext_noop("A text is right or wrong, whatever its capitals and spaces."),
    gettext_noop("whether capitals make no difference (default true)"),
    gettext_noop("whether punctuation makes none, a minus sign included (default false)"),
    gettext_noop("whether the words a, an and the make none (default false)"),
    gettext_noop("A number is right if it is close enough to the label, however it is written."),
    gettext_noop("largest difference that still counts as right (default 0)"),
    gettext_noop("the same as a share of the label: 0.01 is 1 % (default 0)"),
    gettext_noop("A formula or number is right if it is mathematically the same as the label: 1/2 is 0.5."),
    gettext_noop("decimal places to which numbers must agree (default 6)"),
    gettext_noop("whether x + 1 and y + 1, (1, 2) and {1, 2} differ (default true)"),
    gettext_noop("time after which a comparison is given up and counts as wrong (default 10)"),
    gettext_noop("Several labels per item: right only if all of them agree."),
    gettext_noop('sign between the labels of a plain text, such as "|"; without one a value is a JSON list'),
    gettext_noop("Several labels per item: the share of labels in which the two do not agree."),
    gettext_noop(
        "A text costs as much as its meaning, by an embedding model, is away from that of the label."
    ),
    gettext_noop("'package.module:function', from a list of texts to one vector per text (required)"),
    gettext_noop("name of a model, which the function is then called with: f(texts, model=...)"),
    gettext_noop("Largest class probability"),
    gettext_noop("1 minus the largest probability that a classifier gives to any class."),
    gettext_noop("Probability of the answer"),
    gettext_noop("1 minus the probability of the given answer, renormalised among the allowed labels."),
    gettext_noop("Mean token probability"),
    gettext_noop("1 minus the mean probability of the tokens that a language model generated."),
    gettext_noop("Stated confidence"),
    gettext_noop("1 minus the mean confidence that the model states when asked, ten times in the paper."),
    gettext_noop("How many replies must be readable (1 unless told otherwise)."),
    gettext_noop("Disagreement of samples"),
    gettext_noop("How much several answers of the same model to the same item disagree."),
    gettext_noop(
        "'answer' (share of samples that differ from the answer), 'majority' (1 minus the share of the "
        "most frequent sample) or 'entropy'."
    ),
    gettext_noop("Recorded confidence"),
    gettext_noop("The uncertainty that came with the data, or 1 minus the confidence that did."),
    gettext_noop("Fitted on other labels"),
    gettext_noop(
        "The chance that the answer is wrong, learnt from labelled items outside the run: it puts "
        "several scores, and which label was given, on one scale."
    ),
    gettext_noop("The scores that it is learnt from: a list of names."),
    gettext_noop("Whether each label of a list has a level of its own (true unless told otherwise)."),
    gettext_noop("What was learnt; filled in when a run starts."),
    gettext_noop("Weighted mean of scores"),
    gettext_noop("A weighted mean of other scores, steadier than each of them."),
    gettext_noop("The scores and their weights: [{'score': name, 'params': {...}, 'weight': 1}, ...]."),
    gettext_noop("One price per label"),
    gettext_noop("Every label costs the same."),
    gettext_noop("price per label"),
    gettext_noop("What every label costs, short or long."),
    gettext_noop("Generated tokens"),
    gettext_noop("Each token that the model generates counts, as in the paper; what it reads is free."),
    gettext_noop("price of a token"),
    gettext_noop("1 counts in tokens, as the paper does."),
    gettext_noop("Price list of an API"),
    gettext_noop(
        "Tokens that are read and tokens that are generated each have a price, as API providers charge."
    ),
    gettext_noop("price of the input tokens"),
    gettext_noop("For as many tokens as stated below."),
    gettext_noop("price of the output tokens"),
    gettext_noop("number of tokens that the prices are for"),
    gettext_noop("1000000 for prices per million tokens, 1000 for prices per thousand."),
    gettext_noop("Time of a GPU, by the hour"),
    gettext_noop(
        "The time that the machine was busy with an answer, at an hourly rate: a GPU of your own, or rented."
    ),
    gettext_noop("price of an hour"),
    gettext_noop("What the GPU or machine costs while it works: its hourly rate."),
)

# What counts as right (routing.core.right).
gettext_noop(
    "What counts as right is the label that a person gave, blind, or would have given. People's own mistakes "
    "are not counted, and would be further errors."
)
gettext_noop("What counts as right is the label that a person gave, blind, or would have given.")


def said(words: str) -> str:
    """A title or summary of the core as the reader is told it."""
    return gettext(words) if words else ""
