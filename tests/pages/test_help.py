"""The documents on the site: each page with its own, links that stay, and nothing but documents."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Job
from hypac_site.help.documents import OF_PAGE, address_of, document, names
from testbed.factories import add_member, make_project, make_user
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


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("project_list", "quickstart/"),
        ("project_new", "quickstart/"),
        ("account", "people/#doc-whose-password-it-is"),
        ("second_factor", "people/#doc-two-step-log-in"),
        ("tokens", "api/#doc-tokens"),
    ],
)
def test_pages_outside_projects_have_it_too(name: str, place: str) -> None:
    client = Client()
    client.force_login(make_user())
    page = client.get(reverse(name)).content.decode()
    assert f'data-help href="/help/{place}"' in page
    assert 'id="help"' in page
    assert "help.js" in page


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("import", "importing#while-it-runs-and-after"),
        ("predictions", "backends#uploaded"),
        ("undo_import", "people#activity"),
    ],
)
def test_the_page_of_a_job_leads_to_what_it_does(kind: str, place: str) -> None:
    project = make_project()
    job = Job.objects.create(project=project, kind=kind, state=Job.State.QUEUED, params={"revision": 0})
    client = Client()
    client.force_login(project.created_by)
    page = client.get(reverse("job", args=[project.slug, job.pk])).content.decode()
    address = address_of(place)
    assert f'data-help href="{address}"' in page
    assert address in pages_and_ids()[1]


def test_a_document_has_none_beside_it() -> None:
    client = Client()
    client.force_login(make_user())
    for address in ("/help/", "/help/plans/"):
        page = client.get(address).content.decode()
        assert "data-help" not in page
        assert 'id="help"' not in page


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
