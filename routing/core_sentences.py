"""Sentences of the statistical core, in the language of the reader.

The core knows no Django, and what it says of a certificate is part of the document: stored and signed in
English. For pages its sentences are taken apart again by the forms they can have; one in no form that stands
here is shown as it is.
"""

import re

from django.utils.translation import gettext, gettext_noop

FORMS = (
    # Plans (routing.core.planner)
    gettext_noop("About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s)."),
    gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it."
    ),
    gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify %(share)s "
        "even if the models differ from people on none; at least %(least)s labels are needed."
    ),
    gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify %(share)s "
        "even if the models differ from people on none; no draw of this pool would do."
    ),
    gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it, which is too few to certify %(share)s even if the models "
        "differ from people on none; at least %(least)s labels are needed."
    ),
    gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify a mean loss "
        "of %(epsilon)s even if none shows a loss; at least %(least)s labels are needed."
    ),
    gettext_noop(
        "Thresholds with which the models differ from people on at most %(errors)s of these can be certified "
        "at %(share)s."
    ),
    gettext_noop(
        "Thresholds with which the models differ from people on at most about %(errors)s of these can be "
        "certified at %(share)s."
    ),
    gettext_noop(
        "Thresholds with which the models show a mean loss of at most about %(mean)s among these can be "
        "certified at a mean loss of %(epsilon)s."
    ),
    # Certificates (routing.core.targets, routing.core.certify)
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ from the label that a person gave "
        "or would have given (epsilon = %(epsilon)s), with probability at least %(odds)s over the random "
        "draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ from the label "
        "that a person gave or would have given (epsilon = %(epsilon)s), with probability at least %(odds)s "
        "over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ, by the loss '%(loss)s', from the "
        "label that a person gave or would have given (epsilon = %(epsilon)s), with probability at least "
        "%(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ, by the loss "
        "'%(loss)s', from the label that a person gave or would have given (epsilon = %(epsilon)s), with "
        "probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels in "
        "the delivered data set is at most %(epsilon)s (epsilon), with probability at least %(odds)s over "
        "the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels in "
        "the delivered data set of %(size)s items is at most %(epsilon)s (epsilon), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop("People's own mistakes are not counted."),
    gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of the "
        "labels of the pool differ from the label that a person gave or would have given (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of the "
        "labels of the pool differ, by the loss '%(loss)s', from the label that a person gave or would have "
        "given (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s)."
    ),
    gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, the mean loss '%(loss)s' "
        "against the label that a person gave or would have given of the labels of the pool is at most "
        "%(epsilon)s (epsilon), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs from the label that "
        "a person gave or would have given with probability at most %(share)s (epsilon = %(epsilon)s), with "
        "probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs, by the loss "
        "'%(loss)s', from the label that a person gave or would have given with probability at most "
        "%(share)s (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s)."
    ),
    gettext_noop(
        "With these thresholds the expected loss '%(loss)s' against the label that a person gave or would "
        "have given of a new item from the same source is at most %(epsilon)s (epsilon), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    # Certificates of versions 1 and 2, which did not say what counts as right.
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set are wrong (epsilon = %(epsilon)s), with "
        "probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items are wrong (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "The mean loss '%(loss)s' of the labels in the delivered data set is at most %(epsilon)s (epsilon), "
        "with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "The mean loss '%(loss)s' of the labels in the delivered data set of %(size)s items is at most "
        "%(epsilon)s (epsilon), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop("People had labelled %(before)s of these items before the run."),
    gettext_noop(
        "This holds for the whole pool, also if the labels that people gave to the calibration set were "
        "left out."
    ),
    gettext_noop(
        "Labels that people gave count as right; the part that no person labelled may exceed this share on "
        "its own."
    ),
    gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of the "
        "labels of the pool are wrong (epsilon = %(epsilon)s), with probability at least %(odds)s over the "
        "random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, the mean loss '%(loss)s' "
        "of the labels of the pool is at most %(epsilon)s (epsilon), with probability at least %(odds)s over "
        "the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "With these thresholds a new item from the same source gets a wrong label with probability at most "
        "%(share)s (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s)."
    ),
    gettext_noop(
        "With these thresholds the expected loss '%(loss)s' of a new item from the same source is at most "
        "%(epsilon)s (epsilon), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    gettext_noop(
        "Nothing could be certified, so people label everything: people were asked about %(asked)s items, "
        "and at least %(least)s are needed to certify anything."
    ),
    gettext_noop(
        "Nothing could be certified, so people label everything: no step of a chain would save anything at "
        "these costs."
    ),
    gettext_noop(
        "Nothing could be certified, so people label everything: the safest step of the chain '%(chain)s' "
        "already showed %(errors)s errors, and at most %(allowed)s would have passed (with no error at all, "
        "%(least)s labels would have been enough)."
    ),
    gettext_noop(
        "People only is cheaper: this run is expected to cost more than having people label every item."
    ),
    gettext_noop(
        "Nobody could label %(blanks)s items of the calibration set; each counted as an error wherever a "
        "model labels it, and is delivered blank where people should."
    ),
    gettext_noop(
        "Nobody could label 1 item of the calibration set; each counted as an error wherever a model labels "
        "it, and is delivered blank where people should."
    ),
)
_NAMES = frozenset({"loss", "chain"})
_NAME = "[^']+"
_NUMBER = "[0-9][0-9.,e+-]*(?:\\s%)?"
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def _pattern(form: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(form)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"(?P<{part}>{_NAME if part in _NAMES else _NUMBER})"
        else:
            parts[place] = re.escape(part)
    return re.compile("".join(parts) + r"(?: |\Z)")


_PATTERNS = [(form, _pattern(form)) for form in FORMS]


def told(text: str) -> str:
    """What the core says in `text`, in the language of the reader; as it is where it has another form."""
    sentences = []
    place = 0
    while place < len(text):
        found = next(
            ((form, match) for form, pattern in _PATTERNS if (match := pattern.match(text, place))), None
        )
        if found is None:
            return text
        form, match = found
        sentences.append(gettext(form) % match.groupdict())
        place = match.end()
    return " ".join(sentences)
