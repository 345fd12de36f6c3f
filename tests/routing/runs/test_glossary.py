"""Each word of statistics has its sentence where it stands, and on a page of its own."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from routing.templatetags.glossary import WORDS
from testbed.factories import make_user
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db
BUTTON = re.compile(r'<button type="button" class="word" popovertarget="([^"]+)">')


def test_the_pages_with_words_of_statistics_open_the_sentence_of_each_word() -> None:
    world = make_world(60)
    run = world.analysed(m=40)
    client = Client()
    client.force_login(world.manager)
    of_run = {"slug": world.project.slug, "number": run.number}
    pages = {
        "plan": {"slug": world.project.slug},
        "sources": {"slug": world.project.slug},
        "deliveries": {"slug": world.project.slug},
        **dict.fromkeys(("run", "run_evidence", "run_plan"), of_run),
    }
    for name, parts in pages.items():
        page = client.get(reverse(name, kwargs=parts)).content.decode()
        opened = BUTTON.findall(page)
        assert len(opened) >= (6 if name == "sources" else 10), name
        assert len(set(opened)) == len(opened)
        for target in opened:
            assert page.count(f'popover id="{target}"') == 1


def test_the_page_of_all_words_has_them_in_both_languages() -> None:
    client = Client()
    client.force_login(make_user())
    for language in ("en", "fr"):
        page = client.get(reverse("glossary"), headers={"accept-language": language}).content.decode()
        with translation.override(language):
            for name, (word, sentence) in WORDS.items():
                assert f'<dt id="{name}">{word}</dt>' in page
                assert str(sentence).split(".")[0].split("’")[0].split("'")[0] in page


def test_the_ledger_bounds_the_chance_of_a_false_certificate() -> None:
    _word, sentence = WORDS["ledger"]
    with translation.override("en"):
        assert "at most" in str(sentence)
