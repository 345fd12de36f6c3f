"""Ways through the site: the dialog that goes to places, a wrong address, a form that comes back."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.permissions import access_to
from annotation.projects.go import places
from testbed.factories import add_member, make_items, make_project

pytestmark = pytest.mark.django_db


def client_of(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def found(user, project, typed: str) -> list[str]:
    return [place.name for place in places(user, access_to(user, project.slug), typed)]


class TestGo:
    def test_pages_of_the_project_items_by_their_name_and_other_projects(self) -> None:
        project, other, foreign = make_project(), make_project(), make_project()
        owner = project.created_by
        other.memberships.create(user=owner, role="viewer")
        item = make_items(project, 1)[0]
        assert found(owner, project, "deliv") == ["Deliveries", "Items with “deliv”"]
        assert found(owner, project, "upl") == ["Import", "Items with “upl”"]
        assert found(owner, project, item.external_id)[0] == item.external_id
        assert other.name in found(owner, project, "")
        assert foreign.name not in found(owner, project, "")

    def test_an_annotator_finds_no_item_and_no_page_of_leaders(self) -> None:
        project = make_project()
        annotator, item = add_member(project, "annotator"), make_items(project, 1)[0]
        assert found(annotator, project, item.external_id) == []
        assert "Sources" not in found(annotator, project, "")
        assert "Label" in found(annotator, project, "")

    def test_names_are_escaped_and_somebody_else_s_project_is_none(self) -> None:
        project = make_project(name="<script>alert(1)</script>")
        client = client_of(project.created_by)
        page = client.get(reverse("go"), {"q": "", "in": project.slug}, headers={"HX-Request": "true"})
        assert "<script>" not in page.content.decode()
        assert "&lt;script&gt;" in page.content.decode()
        stranger = make_project().created_by
        page = client_of(stranger).get(reverse("go"), {"in": project.slug, "q": "\0x" * 500}).content.decode()
        assert project.slug not in page


class TestWrongAddress:
    def test_members_see_it_within_their_project(self) -> None:
        project = make_project()
        answer = client_of(project.created_by).get(f"/projects/{project.slug}/nothing/")
        assert answer.status_code == 404
        page = answer.content.decode()
        assert f'<a href="/projects/{project.slug}/"><bdi>{project.name}</bdi></a>' in page
        assert "To the overview" in page

    def test_to_others_it_says_no_more_than_any(self) -> None:
        project, stranger = make_project(), make_project().created_by
        answers = [
            client_of(stranger).get(f"/projects/{slug}/nothing/").content.decode().replace(slug, "x")
            for slug in (project.slug, "there-is-none")
        ]
        assert project.name not in answers[0]
        assert "To the overview" not in answers[0]


def test_a_form_that_comes_back_names_the_fields_that_are_wrong() -> None:
    project = make_project()
    page = client_of(project.created_by).post(
        reverse("project_settings", args=[project.slug]), {"form": "basics", "name": ""}
    )
    assert 'Look again at: <a href="#id_name">' in page.content.decode()
    data = {"form": "choices", "choices-TOTAL_FORMS": "1", "choices-INITIAL_FORMS": "1", "choices-0-name": ""}
    page = client_of(project.created_by).post(reverse("project_settings", args=[project.slug]), data)
    assert 'href="#id_choices-0-name"' in page.content.decode()


def test_a_question_with_several_answers_is_led_to_by_the_first_of_them() -> None:
    page = client_of(make_project().created_by).post(
        reverse("project_new"), {"name": "Birds", "labels": "a\nb"}
    )
    assert 'href="#id_task_type_0"' in page.content.decode()
    assert 'id="id_task_type_0"' in page.content.decode()
