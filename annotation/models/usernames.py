"""Which names accounts may have, and when two of them are too much alike.

What Unicode says of identifiers (UTS 39), in the little that a team needs: letters of one script, of those in
everyday use, digits from 0 to 9, and the few signs that Django allows. Two names are one where they differ in
their case or in how a character is encoded (`key_of`), and alike where people read one for the other
(`look_of`).
"""

import unicodedata

from django.utils.translation import gettext as _

SIGNS = frozenset("@.+-_0123456789")
# The first word of the Unicode name of a letter is its script. These are those of everyday use (UAX 31).
_EAST_ASIAN = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL")
_SCRIPTS = frozenset(
    {
        *("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "HEBREW", "ARABIC", "THAANA", "DEVANAGARI", "BENGALI"),
        *("GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI"),
        *("LAO", "TIBETAN", "MYANMAR", "GEORGIAN", "ETHIOPIC", "KHMER", *_EAST_ASIAN),
    }
)
# Letters, and the Latin ones that they are read for.
_READ_AS = (
    ("АВЕЅІЈКМНОРСТУХҮӀԚԜѴҺ", "ABESIJKMHOPCTYXYIQWVh"),
    ("авекмнорстухѕіјһԁԛԝѵӏүгп", "abekmhopctyxsijhdqwvlyrn"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
    ("αβγεηικνορστυχω", "abyenikvopotuxw"),
    ("ՕՍՏԼօոսհցզյք", "OUSLonuhgqjp"),
    ("ɑɡıȷɩɪʟʀʙɢʜɴʏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱǀ", "agijiilrbghnyacdejkmoptuvwzsl"),
    ("I10", "llo"),
)
_LATIN = {ord(one): other for these, those in _READ_AS for one, other in zip(these, those, strict=True)}
# A few strokes each, which beside Latin letters are read for l, I, T, F or O.
_STROKES = frozenset(
    unicodedata.normalize("NFKC", sign)
    for sign in "丨亅丿丶工卜口囗〇ㅣㅡㅇㅏㅓㅐㅑㅕㅗㅜㅠㅛㄱㄴㄷㄇㄧㄥエロト"
)
_ACCENTS = range(0x300, 0x370)


def key_of(name: str) -> str:
    """The same for names that differ in their case or encoding alone."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def look_of(name: str) -> str:
    """The same for names that are read for one another: Ian and lan, ann1 and annl, modern and modem, or with
    letters of another script. Accents make no difference.
    """
    apart = unicodedata.normalize("NFKD", name)
    bare = "".join(sign for sign in apart if ord(sign) not in _ACCENTS)
    latin = bare.translate(_LATIN).translate(_LATIN)  # once more: of Cyrillic and Greek capitals an I is left
    return latin.casefold().replace("rn", "m").replace("vv", "w")


def is_typed(name: str) -> bool:
    """Whether somebody can log in with it: names with blanks stand for people of other programs."""
    return " " not in name


def objection(name: str) -> str:
    """Why nobody may be called so, in words; "" where they may. `name` is as it would be stored (NFKC)."""
    scripts = {_script(sign) for sign in name if sign not in SIGNS}
    if len(name) > 150:
        return _("A username has at most 150 characters.")
    if "" in scripts:
        return _("A username has letters, the digits 0 to 9 and @ . + - _ only.")
    if len(scripts) > 1 and (not scripts <= {"LATIN", *_EAST_ASIAN} or _is_stroked(name, scripts)):
        return _(
            "The letters of a username are of one alphabet: in this one, letters of two are mixed that are "
            "easily taken for one another."
        )
    return ""


def _is_stroked(name: str, scripts: set[str]) -> bool:
    """Whether letters of few strokes stand among Latin ones; `name` is NFKC."""
    return "LATIN" in scripts and not _STROKES.isdisjoint(name)


def _script(sign: str) -> str:
    """ "" for what is no letter, for letters that nobody sees, and for those of other scripts."""
    described = unicodedata.name(sign, "")
    script = described.replace("-", " ").partition(" ")[0]
    is_letter = unicodedata.category(sign).startswith("L") and "FILLER" not in described
    return script if is_letter and script in _SCRIPTS else ""
