"""What stands around a number in a sentence, and what it makes of the number."""

import re

_GROUPED = r"[0-9]{1,3}(?:['\u2019\u00a0\u2009\u202f_][0-9]{3})+(?:[.,][0-9]+)?"
_TIMES = (
    r"[ \t]*(?:\u00d7|x|\*|\\times|\\cdot)[ \t]*10[ \t]*(?:\^|\*\*)[ \t]*\{?(?P<power>[-+]?[0-9]{1,4})\}?"
)
NUMBER = re.compile(
    # A sign, digits with whatever may stand between them, and an exponent.
    rf"(?<![\w.,])(?P<sign>[-+]?)(?P<digits>{_GROUPED}|[0-9][0-9.,]*[0-9]|[0-9]|\.[0-9]+)"
    rf"(?P<exponent>[eE][-+]?[0-9]{{1,4}}(?![\w])|{_TIMES})?"
)
DIGITS = re.compile(r"[0-9]")
FRACTION = re.compile(r"[0-9][ \t]*/[ \t]*[0-9]|\\[dt]?frac\b")
SPACED = re.compile(r"[0-9]{1,3}(?: [0-9]{3})+(?:\.[0-9]+)?")
_MONEY = "$\u20ac\u00a3\u00a5"

BEHIND = re.compile(
    # Powers but of degrees, factorials, fractions as signs, tolerances, divisions, operators of LaTeX,
    r"[ \t]*(?:\^(?![ \t]*\{?\\circ)|\*\*[ \t]*[-0-9{(]|!(?!\s|\Z)"
    r"|[\u00b9\u00b2\u00b3\u2070-\u2079\u00bc-\u00be\u00b1]|/[ \t]*[0-9(\\]"
    r"|\\(?:pm|pi|sqrt|[dt]?frac|over|div|times|cdot|ldots|dots)\b|[\u03c0\u221a\u00d7\u00f7+*]"
    # words and letters that multiply,
    r"|(?i:million|billion|trillion|thousand|hundred|dozen|percent of|mio|mrd|lakh|crore|bn)s?\b"
    r"|[kKMB]\b|[xyzn]\b)"
    # variables, ordinals, times and ranges, hexadecimal digits.
    r"|[a-zA-Z](?<![msghlLtAVWJNCF])\b|(?i:st|nd|rd|th)\b|[:\u2013\u2014-][ \t]?[0-9]|x[0-9A-Fa-f]"
)
BEFORE = re.compile(
    # A minus that may be a dash or stand between two terms, roots, powers, comparisons,
    r"(?:[\w)\]}][ \t]*-|-[ \t]+|[\u2013\u2014]|\\(?:sqrt|log|ln|pm|leq?|geq?|neq?)\b[ \t]*\{?"
    r"|[\^\u221a<>\u2264\u2265\u2260\u00b1/#]"
    # and words after which a number bounds, counts or names something else.
    r"|\b(?:minus|negative|least|most|than|over|under|above|below|exceeds?|before|after|until|from|to|by|of|for|the|"
    r"these|those|all|another|other|every|each|step|part|question|problem|chapter|page|section|note|source|line|"
    rf"figure|table|item|example|option))[ \t]*[*_({{\"'`{_MONEY}]*\Z",
    re.IGNORECASE,
)
FINE_BEFORE = re.compile(
    r"\b(?:(?:equal|equals|comes?|amounts?|adds? up|rounds?|rounded|evaluates|simplifies|reduces|sums?) to"
    r"|(?:total|sum|value|cost|price|profit|average|mean|answer|result|amount|number|area|volume|length"
    r"|distance|speed) of)(?=[ \t]*\Z)",
    re.IGNORECASE,
)
"""What ends in one of the words of BEFORE and still names the number."""
UNSURE = re.compile(
    r"\b(?:not|no|cannot|unknown|undetermined|indeterminate|insufficient|unclear|impossible|unable|sorry|neither|"
    r"either|or|between|if|without|doubt|wrong|incorrect)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
RESULT = re.compile(
    r"(?:\b(?:is|are|was|equals?|gives|makes|totals?|get)\b:?"
    r"|(?<![0-9])(?<![0-9][ \t]):|[=\u2248\u2192]|\\approx|\\to)\Z",
    re.IGNORECASE,
)
UNIT = re.compile(r"[^0-9,;:=?]{0,40}\Z")
SHORT_UNIT = re.compile(r"[^0-9,;:=?\s]{0,20}(?:[ \t][^0-9,;:=?\s]{1,20}){0,2}\Z")
SO = re.compile(r"\W{0,9}(?:so|thus|therefore|hence|in total|overall)\b", re.IGNORECASE)
ITEM = re.compile(r"(?:[0-9]{1,3}[.)]|[-+*\u2022])[ \t]+")
"""What begins an entry of a list."""
ASIDE = re.compile(r"(?<=\S)[ \t]?(?:(?<![\w\\])\([^()=]{1,300}\)|(?<![\w\\])\[[^\[\]=]{1,300}\])")
REMARK = re.compile(
    r"(?<=[\w%\u00b0$})*]),?[ \t]{1,9}(?:because|since|as|which|not|rounded|i\.e|that is)\b", re.IGNORECASE
)
"""Where the answer is over and what is said about it begins."""
SENTENCE = re.compile(r"(?<=[\w%\u00b0$})*])[.!;][*_]{0,2}[ \t]{1,9}(?=[^0-9\s])")

_MINUS = re.compile(rf"[\u2212\ufe63\uff0d]|(?<![\w) \t])\u2013(?=[0-9{_MONEY}])")
_SIGNED_PRICE = re.compile(rf"(?<![\w)])-[ \t]?([{_MONEY}])(?=[0-9.])")
_LATEX = re.compile(r"\\[,;!: ]|\{,\}|\\[%$]|\\text(?=\{)|\\[()\[\]]|\$\$")
_POWER_OF_UNIT = re.compile(
    r"\b(mm|cm|dm|km|m|ft|in|yd|mi|inch|inches|feet|meters?|metres?|units?|s|h)(\}?)"
    r"[ \t]?\^[ \t]?\{?-?[0-9]\}?"
)


def plain_signs(text: str) -> str:
    """The text with signs that mean the same written in one way."""
    text = _LATEX.sub(lambda match: {"{,}": ",", "\\%": "%", "\\$": "$"}.get(match[0], ""), text)
    text = _SIGNED_PRICE.sub(r"\1-", _MINUS.sub("-", text))
    return _POWER_OF_UNIT.sub(r"\1\2", text)
