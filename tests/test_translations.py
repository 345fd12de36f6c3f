"""Translations are whole: every sentence, every placeholder, every plural, and compiled as they stand."""

import gettext
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from django.conf import settings
from django.utils.translation import gettext as _, ngettext, override

from routing.core.bounds import BOUNDS
from routing.core.costs import COSTS
from routing.core.losses import LOSSES
from routing.core.rules import RULES
from routing.core.scores import SCORES
from routing.core.targets import TARGETS
from tests import messages
from tests.support import missing

LOCALE = messages.ROOT / "locale"
# %(name)s with its conversion, %s, and {name} of sentences that are filled in by str.format or by a script.
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[sd]|(?<!\{)\{\w*\}(?!\})|\{\{ ?\w+ ?\}\}|%%")
TAG = re.compile(r"</?[a-z][^>]*>")

LANGUAGES = messages.languages()


def catalogue(language: str, folder: Path = LOCALE) -> Catalog:
    with messages.catalogue(folder, language).open("rb") as file:
        return read_po(file, locale=language)


def entries(language: str) -> Iterator[tuple[Message, list[str], list[str]]]:
    """Each entry with its English forms and its translated ones."""
    for message in catalogue(language):
        if message.id:
            english = list(message.id) if isinstance(message.id, tuple) else [message.id]
            yield message, english, list(message.string) if message.pluralizable else [message.string]


def test_there_is_a_catalogue_for_each_language() -> None:
    assert LANGUAGES
    assert sorted(path.name for path in LOCALE.iterdir()) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_translated(language: str) -> None:
    lacking = [english[0] for _entry, english, ours in entries(language) if not all(ours)]
    assert lacking == [], f"{len(lacking)} sentences; CONTRIBUTING.md says how"
    assert [english[0] for message, english, _ours in entries(language) if message.fuzzy] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_and_tags_are_kept(language: str) -> None:
    wrong = []
    for _message, english, ours in entries(language):
        for pattern in (PLACEHOLDER, TAG):
            # The form for one may leave the number out, in either language.
            needed = sorted(pattern.findall(english[-1]))
            allowed = [needed] if len(english) == 1 else [needed, sorted(pattern.findall(english[0]))]
            wrong += [form for form in ours if form and sorted(pattern.findall(form)) not in allowed]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_plurals_have_every_form(language: str) -> None:
    forms = catalogue(language).num_plurals
    plurals = [ours for message, _english, ours in entries(language) if message.pluralizable]
    assert plurals
    assert [ours for ours in plurals if len(ours) != forms] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_compiled_is_what_is_written(language: str) -> None:
    with messages.catalogue(LOCALE, language, "mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog
    written: dict[object, str] = {}
    for message, english, ours in entries(language):
        key = f"{message.context}\x04{english[0]}" if message.context else english[0]
        if all(ours):
            written |= {(key, n) if message.pluralizable else key: form for n, form in enumerate(ours)}
    assert {key: words for key, words in compiled.items() if key} == written, "run `make messages`"


@pytest.mark.costly
def test_the_words_of_the_code_are_in_it(tmp_path: Path) -> None:
    """What `make messages` would find now is what it found: no sentence was added or changed since."""
    if lacking := messages.missing_programs():
        missing("gettext", f"There is no {', '.join(lacking)}.")
    paths = settings.LOCALE_PATHS
    for name in ("annotation", "hypac_site", "locale", "routing", "templates"):
        shutil.copytree(messages.ROOT / name, tmp_path / name)
    folder = tmp_path / "locale"
    try:
        messages.gather(tmp_path)
    finally:
        settings.LOCALE_PATHS = paths
    for language in LANGUAGES:
        now, then = ({(m.context, m.id) for m in catalogue(language, at)} for at in (folder, LOCALE))
        assert now == then, "run `make messages`, then translate what is new"


def test_what_the_core_says_of_its_choices_can_be_translated() -> None:
    said = set()
    for registry in (TARGETS, RULES, BOUNDS, LOSSES, SCORES, COSTS):
        for kind in registry:
            prices = getattr(kind, "prices", ())
            said |= {getattr(kind, "title", ""), getattr(kind, "summary", "")}
            said |= {*dict(getattr(kind, "parameters", {})).values()}
            said |= {words for price in prices for words in (price.title, price.summary)}
    gathered = {message.id for message in catalogue(LANGUAGES[0])}
    assert said - {""} <= gathered, "mark them by gettext_noop of routing.core.messages"


def test_a_sentence_and_a_plural_come_out_translated() -> None:
    with override("fr"):
        assert _("Log out") == "Se déconnecter"
        found = {ngettext("%(n)s item", "%(n)s items", n) % {"n": n} for n in (0, 1, 2)}
    assert found == {"0 élément", "1 élément", "2 éléments"}


def test_a_french_line_does_not_break_before_a_mark() -> None:
    """A space before a colon or the like, and inside quotation marks, is one that does not break. What stands
    behind a comma is a sign by itself, such as that of a key.
    """
    breaks = re.compile(r"(?<!,) [:;?!»]|« ")
    assert [form for _message, _english, ours in entries("fr") for form in ours if breaks.search(form)] == []
