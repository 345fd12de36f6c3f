"""How much a text that was read in some encoding looks like one that somebody wrote."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

# Dashes, quotation marks, brackets, accents on their own, blanks.
COMMON = ("Pd", "Pi", "Pf", "Ps", "Pe", "Mn", "Zs")


def likeliness(words: Sequence[str], codec: str, common: range) -> float:
    """How much words read like those of a language, about 1 where all do: by letters of one script in a word,
    by case, and by how common characters are. `common` are the first bytes that most characters have in
    `codec`, where one has several.
    """
    points = count = 0.0
    for word in words:
        letters = [character for character in word if character.isalpha()]
        beyond = [character for character in word if not character.isascii()]
        count += len(beyond)
        points += sum(_points(character, common, codec) for character in beyond)
        scripts = {_script(character) for character in letters}
        points -= 2.0 * (len(scripts) - 1) * (len(scripts) > 1)
        inner = word.strip("'’“”„«»‘…–—-!?.\u00a0")
        points -= 4.0 * sum(not (one.isalpha() or one.isascii() or one in "’–") for one in inner[1:-1])
        points -= sum(one.islower() and other.isupper() for one, other in pairwise(letters))
        if scripts == {"LATIN"} and len(letters) > 3:
            accented = sum(not character.isascii() for character in letters)
            points -= accented if 2 * accented > len(letters) else 0
    return points / count if count else 0.0


def _points(character: str, common: range, codec: str) -> float:
    category = unicodedata.category(character)
    if common and ord(character) > 0xFF:
        try:
            return 1.0 if character.encode(codec)[0] in common else -0.5
        except UnicodeEncodeError:
            return -0.5
    if category[0] == "L":
        return 1.0
    if category in COMMON or character in "…§°·¿¡€£¥":
        return 0.8
    return -3.0 if category in ("Cc", "Cn", "Co", "Cf") else -1.0


@cache
def _script(character: str) -> str:
    first = unicodedata.name(character, "?").split()[0]
    return "CJK" if first in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "IDEOGRAPHIC") else first
