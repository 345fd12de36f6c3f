"""Each page shows what it is for; forms keep what was typed; hostile text stays text; images stay images."""

import io
import json
import re

import pytest
from django.urls import reverse

from annotation.common.files import store_file
from annotation.common.markdown import render
from annotation.labelling import queue
from annotation.models import Project, User
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = pytest.mark.django_db
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}"


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


class TestProjects:
    def test_without_one_it_says_what_to_do(self, client_of) -> None:
        page = text(client_of(make_user()).get("/"))
        assert "No project yet" in page
        assert reverse("project_new") in page

    def test_only_ones_own_are_listed(self, owner, project) -> None:
        other = make_project(name="Somebody else's")
        page = text(owner.get("/"))
        assert project.name in page
        assert other.slug not in page

    def test_a_new_one_leads_to_the_import(self, client_of) -> None:
        client = client_of(make_user())
        data = {"name": "Birds", "task_type": "single_choice", "labels": "owl\n\n hen \n",
                "human_cost": "0.5", "currency": "EUR"}  # fmt: skip
        answer = client.post(reverse("project_new"), data)
        project = Project.objects.get(name="Birds")
        assert answer.url == reverse("import_upload", args=[project.slug])
        assert list(project.choices.values_list("name", flat=True)) == ["owl", "hen"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"name": ""}, "required"),
            ({"labels": "only one"}, "at least two"),
            ({"labels": "a\nA"}, "there twice"),
            ({"human_cost": "-1"}, "A price cannot be negative."),
            ({"human_cost": "much"}, "Enter a number"),
        ],
    )
    def test_what_was_typed_stays_when_something_is_wrong(self, client_of, change, words: str) -> None:
        client = client_of(make_user())
        data = {"name": "Birds & co", "task_type": "single_choice", "labels": "owl\nhen", "human_cost": "1",
                "guidelines": "Look **well**", "currency": "EUR", **change}  # fmt: skip
        page = text(client.post(reverse("project_new"), data))
        assert words in page
        assert "Look **well**" in page
        assert "EUR" in page
        assert not Project.objects.exists()

    def test_settings_change_names_keys_and_colours(self, owner, project) -> None:
        url = reverse("project_settings", args=[project.slug])
        rows = list(project.choices.values("key", "name", "hotkey", "color"))
        data = {"form": "choices", "choices-TOTAL_FORMS": "3", "choices-INITIAL_FORMS": "2"}
        for index, row in enumerate([*rows, {"key": "", "name": "emu", "hotkey": "e", "color": "#112233"}]):
            data |= {f"choices-{index}-{name}": value for name, value in row.items()}
        data["choices-0-name"] = "kitten"
        assert owner.post(url, data).status_code == 302
        assert list(project.choices.values_list("key", "name", "hotkey")) == [
            ("cat", "kitten", "1"), ("dog", "dog", "2"), ("emu", "emu", "e"),
        ]  # fmt: skip

    def test_settings_say_what_is_wrong_with_a_key(self, owner, project) -> None:
        data = {"form": "choices", "choices-TOTAL_FORMS": "2", "choices-INITIAL_FORMS": "2",
                "choices-0-key": "cat", "choices-0-name": "cat", "choices-0-hotkey": "u",
                "choices-1-key": "dog", "choices-1-name": "dog", "choices-1-hotkey": "d"}  # fmt: skip
        page = text(owner.post(reverse("project_settings", args=[project.slug]), data))
        assert "has a meaning on the annotation page" in page
        assert re.search(r"<p[^>]* autofocus>[^<]*has a meaning", page), (
            "it is below what the window shows first"
        )


class TestMembers:
    def test_a_password_is_shown_once(self, owner, project) -> None:
        url = reverse("member_create", args=[project.slug])
        answer = owner.post(url, {"new-username": "bea", "new-role": "annotator"})
        page = text(answer)
        password = page.split('id="password">')[1].split("<")[0]
        assert User.objects.get(username="bea").check_password(password)
        assert "no-store" in answer.headers["Cache-Control"]
        assert password not in text(owner.get(reverse("members", args=[project.slug])))
        assert password not in json.dumps(list(project.audit_events.values("action", "target", "data")))

    def test_a_name_that_nobody_has_is_kept_and_explained(self, owner, project) -> None:
        url = reverse("member_add", args=[project.slug])
        page = text(owner.post(url, {"add-username": "nobody-here", "add-role": "viewer"}))
        assert "There is no account" in page
        assert 'value="nobody-here"' in page

    def test_the_last_owner_stays(self, owner, project) -> None:
        args = [project.slug, project.created_by_id]
        answer = owner.post(reverse("member_remove", args=args), follow=True)
        assert project.memberships.filter(user=project.created_by).exists()
        assert [url for url, _ in answer.redirect_chain] == [reverse("members", args=[project.slug])]
        assert "only owner" in text(answer)
        assert "role:" not in text(answer)

    def test_an_owner_who_steps_back_goes_where_the_new_role_may(self, owner, project) -> None:
        add_member(project, "owner")
        args = [project.slug, project.created_by_id]
        changed = owner.post(reverse("member_role", args=args), {"role": "viewer"})
        assert changed.headers["Location"] == reverse("members", args=[project.slug])


class TestHostileText:
    def test_nothing_breaks_out(self, client_of) -> None:
        project = make_project(name=HOSTILE, choices=(HOSTILE, "dog"), guidelines=HOSTILE)
        items = make_items(project, [HOSTILE], data={HOSTILE: HOSTILE})
        queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1)
        stored = store_file(
            project=project, content=io.BytesIO(json.dumps({HOSTILE: HOSTILE}).encode()),
            original_name=f"{HOSTILE}.jsonl", media_type="text/plain",
        )  # fmt: skip
        client = client_of(project.created_by)
        slug = project.slug
        pages = [
            reverse(name, args=[slug])
            for name in ("overview", "annotate", "items", "members", "project_settings", "audit", "jobs")
        ]
        pages += ["/", reverse("item", args=[slug, items[0].pk])]
        pages += [reverse("import_mapping", args=[slug, stored.pk])]
        for address in pages:
            page = text(client.get(address))
            assert "<script>alert" not in page, address
            assert "<img src=x" not in page, address
            assert "14}" not in page, address

    @pytest.mark.parametrize(
        "source",
        [
            "<b hx-get='/logout/'>x</b>",
            "[x](javascript:alert(1))",
            "![x](https://elsewhere.example/pixel.png)",
            "<style>*{display:none}</style>",
            "[x](data:text/html,<script>alert(1)</script>)",
            '<a href="x" onclick="alert(1)">x</a>',
        ],
    )
    def test_guidelines_are_text_with_a_little_structure(self, source: str) -> None:
        html = render(source)
        for word in ("<b", "<style", "<img", "<script", "<a"):
            assert word not in html


def test_pages_of_a_person_are_kept_by_no_shared_cache(owner, project) -> None:
    answer = owner.get(reverse("overview", args=[project.slug]))
    assert "private" in answer.headers["Cache-Control"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_no_page_has_inline_script_or_style(owner, project) -> None:
    for name in (
        "overview",
        "annotate",
        "items",
        "members",
        "project_settings",
        "plan",
        "sources",
        "source_new",
    ):
        page = text(owner.get(reverse(name, args=[project.slug])))
        assert " style=" not in page, name
        assert "<style" not in page, name
        assert " onclick=" not in page, name
        assert page.count("<script") == page.count("<script src="), name


@pytest.mark.parametrize(
    ("chosen", "shown"), [("4", ' data-text="4"'), ('"><script>', ""), ("9", ""), ("", "")]
)
def test_a_page_comes_with_the_size_of_text_that_was_chosen(owner, project, chosen: str, shown: str) -> None:
    owner.cookies["text_size"] = chosen
    page = text(owner.get(reverse("annotate", args=[project.slug])))
    assert f'<html lang="en"{shown}>' in page
