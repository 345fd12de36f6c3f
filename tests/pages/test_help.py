"""The documents on the site: each page with its own, links that stay, and nothing but documents."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from hypac_site.help.documents import OF_PAGE, address_of, document, names
from testbed.factories import add_member, make_project
from tests.pages import test_access

pytestmark = pytest.mark.django_db


def pages_and_ids() -> tuple[set[str], set[str]]:
    links, places = set(), set()
    for name in names():
        found = document(name)
        assert found
        links |= set(re.findall(r'href="(/[^"]*)"', found.html))
        places |= {address_of(name)} | {
            f"{address_of(name)}#{one}" for one in re.findall(r'id="([^"]+)"', found.html)
        }
    return links, places


def test_pages_and_links_lead_to_documents_and_headings_that_exist() -> None:
    links, places = pages_and_ids()
    assert len(links) > 50
    assert links - places == set()
    assert {address_of(place) for place in OF_PAGE.values()} - places == set()
    assert set(OF_PAGE) - set(test_access.PAGES) - set(test_access.SIGNED_IN) == set()


def test_each_page_leads_to_its_document_and_it_is_a_page_of_its_own() -> None:
    project = make_project()
    client = Client()
    client.force_login(add_member(project, "annotator"))
    page = client.get(reverse("annotate", args=[project.slug])).content.decode()
    assert 'data-help href="/help/labelling/#doc-giving-answers"' in page
    whole = client.get("/help/labelling/").content.decode()
    part = client.get("/help/labelling/", headers={"HX-Request": "true"}).content.decode()
    for shown in (whole, part):
        assert 'id="doc-giving-answers"' in shown
    assert "<h1>Labelling, several people, review</h1>" in whole
    assert "<html" not in part


def test_the_list_goes_by_who_reads_and_names_documents_by_their_titles() -> None:
    client = Client()
    client.force_login(make_project().created_by)
    page = client.get("/help/").content.decode()
    assert '<a href="/help/deployment/"' in page
    assert ">In production</a>" in page
    assert ".md<" not in page.replace("CONTRIBUTING.md<", "")
    assert "<strong>manage a project</strong>" in page


@pytest.mark.parametrize("name", ["none", "settings", "contributing", "readme"])
def test_what_is_no_document_is_not_found(name: str) -> None:
    client = Client()
    client.force_login(make_project().created_by)
    assert client.get(f"/help/{name}/").status_code == 404
