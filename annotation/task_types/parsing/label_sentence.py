"""The label that a sentence gives as its answer.

A label that occurs in a sentence may be denied, doubted, compared with or quoted there. It counts only
where it stands in the place of an answer: at the beginning, or behind "is", "label", ":" and the like, and
before the end of the clause; with no word of denial or doubt before it, none of a second thought behind it,
and no other label in the sentence.
"""

import re
import unicodedata
from collections.abc import Iterator

from annotation.task_types.base import Choices, Reading
from annotation.task_types.parsing.label_names import names_of, unknown
from annotation.task_types.parsing.markers import last_line

MAX_SENTENCE = 300
"""Characters: a label is looked for within a sentence, not within an essay."""

_MARKUP = re.compile(
    r"[*`\"\u201c\u201d\u00ab\u00bb\u3010\u3011]|(?<!\w)['\u2018\u2019_]+|['\u2018\u2019_]+(?!\w)|\\(?:text\w*|boxed)|[{}]|\$(?=[^$]*\$[^$]*\Z)|(?<=\w)\$\Z"
)
_JOINED = re.compile(r"(?<=[^\W\d_])[-\u2010-\u2013_](?=[^\W\d_])")
_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|without|cannot|hardly|barely|scarcely|rarely|seldom|far|unlikely|"
    r"doubt\w*|wrong\w*|incorrect\w*|false\w*|untrue|little|less|least|if|whether|could|may|might|almost|nearly|"
    r"partly|partially|rather|instead|either|or|than|except|unless|lack\w*|free|zero|fails?|avoid\w*|exclud\w*|"
    r"reject\w*|rul(?:e|es|ed|ing)|eliminat\w*|unsure|uncertain|nicht|kein\w*|pas|sans|ohne)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
_SECOND_THOUGHT = re.compile(
    r"\?|\b(?:or|but|if|unless|except|however|although|though|were|maybe|perhaps|might|could|may|instead|actually|wait|"
    r"unsure|uncertain|wrong|incorrect|false|unlikely|doubtful|doubt it)\b"
    r"|\A\W*(?:=|:|not\W*\Z|not (?:really|at all|exactly|sure|necessarily|quite)\b|no\W*\Z)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:\A[\s(\[]*(?:(?:so|thus|therefore|hence|overall|then),?\s+)?"
    r"|\b(?:is|are|was|be|as|label|labels|answer|option|choice|choose|chose|select|selected|pick|picked|category|class|"
    r"classification|sentiment|rating|rate|score|say|it|ist|est)\b\s*[:=]?\s*|[:=]\s*)"
    r"(?:(?:an?|the|clearly|definitely|certainly|obviously|surely|probably|likely|overwhelmingly|very|also|thus|"
    r"therefore|indeed|simply|just|option|answer|label|class|category)\s+)*\(?\Z",
    re.IGNORECASE,
)
_PAUSE = re.compile(
    r"\)?\s*(?:\Z|[.!,;\u3002\uff0c)](?:\s|\Z)|\s[-\u2013\u2014]\s|\(|\b(?:because|since|as|due|based|given)\b|[^\w\s:=?/%+&#-]+\s*\Z"
    r"|is\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:answer|choice|option|label|one|category))?\W*\Z)",
    re.IGNORECASE,
)


def in_sentence(text: str, choices: Choices) -> Reading:
    """The one label that the sentence, or the last line of a longer text, gives as its answer."""
    text = text.strip()
    if "\n" in text or len(text) > MAX_SENTENCE:
        text = last_line(text)
        if len(text) > MAX_SENTENCE:
            return Reading(None, "the answer does not end in a label")
    sentence, places = _plain(text), {}
    rest = sentence
    # The longest first, each taken out where it was found: "not spam" is no mention of "spam".
    for spelling in sorted(names_of(choices).exact, key=lambda entry: (-len(entry), entry)):
        for match in list(_mentions(spelling, rest)):
            places[match.start()] = (spelling, match.end())
            rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    keys = {names_of(choices).exact[spelling] for spelling, _ in places.values()}
    if not keys:
        return Reading(None, unknown(text))
    if len(keys) > 1:
        return Reading(None, "names several labels")
    for start, (spelling, end) in sorted(places.items()):
        if _DENIED.search(rest[:start]) or _SECOND_THOUGHT.search(rest[end:]):
            return Reading(None, "may say that the label does not fit")
        lead = _LEAD.search(sentence[:start])
        listed = not start and spelling.isdecimal() and sentence[end : end + 1] in (".", ")")  # "2. It is"
        if lead and not listed and _PAUSE.match(sentence, end):
            return Reading(names_of(choices).exact[spelling])
    return Reading(None, "names a label, and not clearly as the answer")


def mentioned(text: str, choices: Choices) -> set[str]:
    """Keys of all labels that occur in a text, whatever it says of them."""
    names, plain = names_of(choices), _plain(text)
    return {key for spelling, key in names.exact.items() if next(_mentions(spelling, plain), None)}


def _plain(text: str) -> str:
    """On one line, with one space between words, without emphasis and quotation marks."""
    text = _MARKUP.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(_JOINED.sub(" ", text).split())


def _mentions(spelling: str, text: str) -> "Iterator[re.Match[str]]":
    word = _plain(spelling)
    if not word or word.casefold() not in text.casefold():
        return iter(())
    # One letter is a word of many languages: it counts as written.
    flags = re.IGNORECASE if len(word) > 1 else 0
    return re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, flags)
