"""Deciding where people differ, flags, and the page on agreement: without JavaScript, and as htmx asks."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import Comment, Item, Project, Settlement, User, WorkBatch, WorkItem
from testbed.factories import add_member, make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
PART = {"HX-Request": "true"}
EVIL = '<img src=x onerror="alert(1)" hx-get="/evil">'


class Team:
    """Two people (and more, as the rows are wide) who have answered about items, a row of answers each."""

    def __init__(self, rows: list[tuple], *, blind: bool = False, comment: str = "", **fields) -> None:
        fields.setdefault("choices", ("cat", "dog", "emu"))
        self.project: Project = make_project(**fields)
        self.slug = self.project.slug
        self.people = [add_member(self.project) for _ in rows[0]]
        self.items = make_items(self.project, len(rows))
        self.batch: WorkBatch = queue.create_batch(
            project=self.project,
            item_ids=[item.pk for item in self.items],
            blind=blind,
            priority=1,
            entropy=3,
            overlap=len(rows[0]),
        )
        answers = {item.pk: row for item, row in zip(self.items, rows, strict=True)}
        for index, person in enumerate(self.people):
            while task := queue.claim(project=self.project, user=person):
                queue.submit(
                    user=person,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=answers[task.item.pk][index],
                    idempotency_key=f"{self.batch.pk}-{task.work_item.pk}",
                    comment=comment,
                )

    def url(self, name: str, **arguments: object) -> str:
        return reverse(name, kwargs={"slug": self.slug, **arguments})

    def settled(self, item: Item) -> Settlement | None:
        return Settlement.objects.filter(item=item, superseded_by__isnull=True).first()


def fields(html: str) -> dict[str, str]:
    form = html[html.index('id="label-form"') :]
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    )


def item_of(html: str) -> Item:
    return WorkItem.objects.get(pk=fields(html)["work_item"]).item


@pytest.fixture
def team() -> Team:
    return Team([("cat", "dog"), ("dog", "emu"), ("cat", "cat")])


@pytest.fixture
def reviewer(team: Team, client_of: Callable[[User], Client]) -> Client:
    return client_of(add_member(team.project, "reviewer"))


class TestDeciding:
    def test_one_after_the_other_until_nothing_is_left(self, team, reviewer) -> None:
        page = reviewer.get(team.url("review")).content.decode()
        assert "2 items wait for a decision" in page
        first = item_of(page)
        data = {**fields(page), "value": "emu", "comment": "It has feathers."}
        answer = reviewer.post(team.url("review_decide"), data)
        assert answer.status_code == 302
        page = reviewer.get(answer.url).content.decode()
        assert "Decided: emu" in page
        assert "1 item waits for a decision" in page
        assert item_of(page) != first
        settled = team.settled(first)
        assert (settled.value, settled.method, settled.comment) == ("emu", "adjudicated", "It has feathers.")
        answer = reviewer.post(team.url("review_decide"), {**fields(page), "value": "dog"}, follow=True)
        assert "Nothing to decide" in answer.content.decode()
        assert Settlement.objects.filter(method="adjudicated").count() == 2

    def test_htmx_gets_the_next_one_in_the_same_answer(self, team, reviewer) -> None:
        page = reviewer.get(team.url("review")).content.decode()
        body = reviewer.post(
            team.url("review_decide"), {**fields(page), "value": "cat"}, headers=PART
        ).content.decode()
        assert "<html" not in body
        assert "Decided: cat" in body
        assert fields(body)["work_item"] != fields(page)["work_item"]
        assert '<span id="left-badge" class="badge warn" hx-swap-oob="outerHTML">1</span>' in body

    def test_what_is_passed_over_comes_again_after_the_last(self, team, reviewer) -> None:
        first = reviewer.get(team.url("review")).content.decode()
        skip = re.search(r'data-skip[^>]*href="([^"]+)"', first)[1].replace("&amp;", "&")
        second = reviewer.get(team.url("review") + skip[skip.index("?") :]).content.decode()
        assert item_of(second) != item_of(first)
        again = reviewer.get(team.url("review"), {"after": fields(second)["work_item"]}).content.decode()
        assert item_of(again) == item_of(first)
        assert not Settlement.objects.filter(method="adjudicated").exists()

    def test_of_two_reviewers_at_once_the_second_is_told(self, team, reviewer, client_of) -> None:
        other = client_of(add_member(team.project, "manager"))
        pages = [client.get(team.url("review")).content.decode() for client in (reviewer, other)]
        assert item_of(pages[0]) == item_of(pages[1])
        reviewer.post(team.url("review_decide"), {**fields(pages[0]), "value": "cat"})
        body = other.post(
            team.url("review_decide"), {**fields(pages[1]), "value": "dog"}, headers=PART
        ).content.decode()
        assert "Somebody else has decided about this item" in body
        assert item_of(body) != item_of(pages[0])
        assert team.settled(item_of(pages[0])).value == "cat"
        plain = other.post(team.url("review_decide"), {**fields(pages[1]), "value": "dog"}, follow=True)
        assert "Somebody else has decided about this item" in plain.content.decode()

    def test_a_reviewer_changes_their_own_decision(self, team, reviewer, client_of) -> None:
        page = reviewer.get(team.url("review")).content.decode()
        item, data = item_of(page), fields(page)
        reviewer.post(team.url("review_decide"), {**data, "value": "cat"})
        again = reviewer.get(team.url("review"), {"work_item": data["work_item"]}).content.decode()
        assert "You have decided about this item" in again
        assert 'value="cat" data-hotkey="1" aria-keyshortcuts="1" aria-pressed="true"' in again
        reviewer.post(team.url("review_decide"), {**fields(again), "value": "dog"})
        assert (team.settled(item).value, team.settled(item).version) == ("dog", 2)
        other = client_of(add_member(team.project, "reviewer"))
        page = other.get(team.url("review"), {"work_item": data["work_item"]}, follow=True).content.decode()
        assert "does not wait for a decision any more" in page

    def test_a_label_that_is_none_changes_nothing(self, team, reviewer) -> None:
        page = reviewer.get(team.url("review")).content.decode()
        for value in ("horse", ""):
            answer = reviewer.post(
                team.url("review_decide"), {**fields(page), "value": value, "comment": "kept words"}
            )
            body = answer.content.decode()
            assert answer.status_code == 200
            assert item_of(body) == item_of(page)
            assert 'value="kept words"' in body
        assert not Settlement.objects.filter(method="adjudicated").exists()

    def test_items_on_which_people_agree_tell_nothing(self, team, reviewer) -> None:
        settled = WorkItem.objects.get(item=team.items[2], slot=0)
        data = {"work_item": str(settled.pk), "value": "dog"}
        page = reviewer.post(team.url("review_decide"), data, follow=True).content.decode()
        assert "does not wait for a decision any more" in page
        assert team.settled(team.items[2]).value == "cat"

    def test_items_of_another_project_are_not_there(self, team, reviewer) -> None:
        other = Team([("cat", "dog")])
        theirs = WorkItem.objects.get(batch=other.batch, slot=0)
        data = {"work_item": str(theirs.pk), "value": "dog"}
        assert reviewer.post(team.url("review_decide"), data).status_code == 404
        page = reviewer.get(team.url("review"), {"work_item": str(theirs.pk)}, follow=True).content.decode()
        assert "does not wait for a decision any more" in page
        for number in ("x", "", "-1"):
            assert reviewer.post(team.url("review_decide"), {"work_item": number}).status_code == 404

    def test_a_counted_label_is_changed_only_after_a_yes(self, reviewer, client_of) -> None:
        team = Team([("cat", "dog")], blind=True)
        client = client_of(add_member(team.project, "reviewer"))
        page = client.get(team.url("review")).content.decode()
        client.post(team.url("review_decide"), {**fields(page), "value": "cat"})
        queue.lock_batch(batch=team.batch)
        again = client.get(team.url("review"), {"work_item": fields(page)["work_item"]}).content.decode()
        assert "already been counted" in again
        data = {**fields(again), "value": "dog"}
        assert "Tick the box first" in client.post(team.url("review_decide"), data).content.decode()
        assert team.settled(team.items[0]).value == "cat"
        client.post(team.url("review_decide"), {**data, "confirm": "yes"})
        assert team.settled(team.items[0]).value == "dog"

    def test_who_has_seen_predictions_does_not_decide_about_blind_items(self, client_of, bare_port) -> None:
        team = Team([("cat", "dog")], blind=True)
        client = client_of(add_member(team.project, "reviewer"))
        page = client.get(team.url("review")).content.decode()
        bare_port.blind_objection = lambda project, user: "You have seen predictions."
        assert "Nothing to decide" in client.get(team.url("review")).content.decode()
        body = client.post(team.url("review_decide"), {**fields(page), "value": "cat"}, follow=True)
        assert "does not wait for a decision any more" in body.content.decode()
        assert team.settled(team.items[0]) is None


class TestAnswersShown:
    def test_names_show_but_not_of_blind_items_unless_asked_for(self, team, reviewer, client_of) -> None:
        assert team.people[0].username in reviewer.get(team.url("review")).content.decode()
        blind = Team([("cat", "dog")], blind=True)
        client = client_of(add_member(blind.project, "reviewer"))
        page = client.get(blind.url("review")).content.decode()
        assert blind.people[0].username not in page
        assert "Person 1" in page
        named = client.get(blind.url("review"), {"names": "1"}).content.decode()
        assert blind.people[0].username in named
        assert fields(named)["names"] == "1"

    def test_the_guidelines_are_at_hand(self, client_of) -> None:
        team = Team([("cat", "dog")], guidelines="Look **twice**.")
        page = client_of(team.project.created_by).get(team.url("review")).content.decode()
        assert "Look <strong>twice</strong>." in page

    def test_hostile_words_stay_words(self, client_of) -> None:
        team = Team([(EVIL, EVIL + "2")], comment=EVIL, task_type="long_text", choices=())
        client = client_of(add_member(team.project, "reviewer"))
        add_comment(item=team.items[0], author=team.people[0], text=EVIL, is_flag=True)
        for address in ("review", "review_flags", "agreement"):
            assert EVIL not in client.get(team.url(address)).content.decode()
        page = client.get(team.url("review")).content.decode()
        assert "&lt;img src=x" in page
        assert 'hx-disable>\n          <span class="kept-lines"' in page

    def test_an_answer_is_taken_over_and_changed(self, client_of) -> None:
        team = Team([("a red house", "a blue house")], task_type="short_text", choices=())
        client = client_of(add_member(team.project, "reviewer"))
        page = client.get(team.url("review")).content.decode()
        links = re.findall(r'data-take="(\d)" href="([^"]+)"', page)
        assert [key for key, _ in links] == ["1", "2"]
        query = links[1][1].replace("&amp;", "&").split("?")[1]
        taken = client.get(f"{team.url('review')}?{query}").content.decode()
        assert 'id="answer" name="value" value="a blue house"' in taken
        data = {**fields(taken), "value": "a dark blue house"}
        client.post(team.url("review_decide"), data)
        assert team.settled(team.items[0]).value == "a dark blue house"

    def test_several_choices(self, client_of) -> None:
        team = Team([(["cat"], ["cat", "dog"])], task_type="multiple_choice")
        client = client_of(add_member(team.project, "reviewer"))
        data = fields(client.get(team.url("review")).content.decode())
        decide = team.url("review_decide")
        assert "Tick each label that fits" in client.post(decide, data).content.decode()
        both = {**data, "value": ["cat"], "none": "yes"}
        assert "Give one of the two answers" in client.post(decide, both).content.decode()
        client.post(decide, {**data, "none": "yes"})
        assert team.settled(team.items[0]).value == []


class TestFlags:
    def test_where_only_flags_wait_the_first_page_leads_to_them(self, project, client_of) -> None:
        reviewer = client_of(add_member(project, "reviewer"))
        address, flags = (reverse(name, args=[project.slug]) for name in ("review", "review_flags"))
        button = f'role="button" href="{flags}"'
        assert button not in reviewer.get(address).content.decode()
        add_comment(item=make_items(project, 1)[0], author=project.created_by, text="?", is_flag=True)
        assert button in reviewer.get(address).content.decode()

    def test_a_flag_is_seen_to_once(self, team, reviewer, client_of) -> None:
        flag = add_comment(item=team.items[0], author=team.people[0], text="Upside down?", is_flag=True)
        add_comment(item=team.items[1], author=team.people[0], text="Only a remark")
        page = reviewer.get(team.url("review_flags")).content.decode()
        assert "Upside down?" in page
        assert "Only a remark" not in page
        resolve = team.url("flag_resolve", comment_id=flag.pk)
        assert "The flag is resolved" in reviewer.post(resolve, follow=True).content.decode()
        flag.refresh_from_db()
        assert flag.resolved_by.username.startswith("reviewer")
        other = client_of(add_member(team.project, "manager"))
        assert "somebody else has resolved it" in other.post(resolve, follow=True).content.decode()
        assert "No flag is open" in other.get(team.url("review_flags")).content.decode()

    def test_remarks_and_flags_of_others_are_not_there(self, team, reviewer) -> None:
        remark = add_comment(item=team.items[1], author=team.people[0], text="Only a remark")
        other = Team([("cat", "dog")])
        theirs = add_comment(item=other.items[0], author=other.people[0], text="", is_flag=True)
        for comment in (remark, theirs):
            path = team.url("flag_resolve", comment_id=comment.pk)
            assert reviewer.post(path).status_code == 404

    def test_flags_on_hidden_items_are_hidden(self, team, reviewer, bare_port) -> None:
        work_item = WorkItem.objects.get(item=team.items[0], slot=0)
        hidden = add_comment(
            item=team.items[0], author=team.people[0], text="Odd", is_flag=True, work_item=work_item
        )
        add_comment(item=team.items[1], author=team.people[0], text="From its page", is_flag=True)
        bare_port.hidden_batches = lambda project: {team.batch.pk}
        page = reviewer.get(team.url("review_flags")).content.decode()
        assert "From its page" in page
        assert "Odd" not in page
        assert reviewer.post(team.url("flag_resolve", comment_id=hidden.pk)).status_code == 404
        assert Comment.objects.get(pk=hidden.pk).resolved_at is None

    def test_many_flags_come_in_pages(self, team, reviewer) -> None:
        for number in range(30):
            add_comment(item=team.items[0], author=team.people[0], text=f"flag {number:02}", is_flag=True)
        first = reviewer.get(team.url("review_flags")).content.decode()
        second = reviewer.get(team.url("review_flags"), {"page": 2}).content.decode()
        assert ("flag 24" in first, "flag 25" in first, "flag 25" in second) == (True, False, True)


class TestCount:
    def test_the_navigation_says_how_much_waits(self, team, reviewer) -> None:
        add_comment(item=team.items[0], author=team.people[0], text="", is_flag=True)
        assert team.url("review_count") in reviewer.get(team.url("overview")).content.decode()
        assert ">3<" in reviewer.get(team.url("review_count")).content.decode()

    def test_nothing_waits(self, client_of) -> None:
        project = make_project()
        owner = client_of(project.created_by)
        assert owner.get(reverse("review_count", args=[project.slug])).content.decode().strip() == ""


class TestAgreementPage:
    def test_figures_in_words(self, team, reviewer) -> None:
        page = reviewer.get(team.url("agreement")).content.decode()
        assert "6 answers" in page
        assert "33.3" in page
        assert "\N{MINUS SIGN}0." in page or "0." in page
        assert team.people[0].username in page
        assert "Krippendorff asks for at least 0.8" in page

    def test_viewers_read_it_and_are_led_to_it_alone(self, team, client_of) -> None:
        viewer = client_of(add_member(team.project, "viewer"))
        page = viewer.get(team.url("agreement")).content.decode()
        assert "Two by two" in page
        assert team.url("review_flags") not in page
        assert team.url("agreement") in viewer.get(team.url("overview")).content.decode()

    def test_without_overlap_it_says_how_to_have_some(self, project, owner, client_of) -> None:
        page = owner.get(reverse("agreement", args=[project.slug])).content.decode()
        assert "One person labels each item" in page
        assert page.count(reverse("project_settings", args=[project.slug])) > 1
        reviewer = client_of(add_member(project, "reviewer"))
        assert (
            "One person labels each item"
            in reviewer.get(reverse("review", args=[project.slug])).content.decode()
        )
        project.overlap = 2
        project.save()
        assert (
            "No item has two answers yet"
            in owner.get(reverse("agreement", args=[project.slug])).content.decode()
        )

    def test_what_is_hidden_is_left_out_and_it_is_said(self, team, reviewer, bare_port) -> None:
        bare_port.hidden_batches = lambda project: {team.batch.pk}
        page = reviewer.get(team.url("agreement")).content.decode()
        assert "left out until its run is analysed" in page
        assert "Two by two" not in page

    @pytest.mark.parametrize(
        ("task_type", "rows", "words"),
        [
            ("number", [("1", "2"), ("5", "5")], "Alpha by distance"),
            ("short_text", [("A", "a"), ("b", "c")], "whatever their case"),
            ("multiple_choice", [(["cat"], ["cat"]), ([], ["dog"])], "each label alone"),
            ("math", [("x+1", "x + 1"), ("2", "3")], "whatever their white space"),
            ("code", [("a", "a"), ("b", "c")], "the same text"),
        ],
    )
    def test_every_task_type(self, task_type: str, rows: list, words: str, client_of) -> None:
        choices = ("cat", "dog") if task_type == "multiple_choice" else ()
        team = Team(rows, task_type=task_type, choices=choices)
        page = client_of(team.project.created_by).get(team.url("agreement")).content.decode()
        assert words in page
        assert re.search(r"Equal answers</dt><dd>50", page)

    def test_many_labels_show_what_is_confused_most(self, client_of) -> None:
        names = tuple(f"kind {number}" for number in range(20))
        team = Team([("kind 1", "kind 2"), ("kind 3", "kind 3")], choices=names)
        page = client_of(team.project.created_by).get(team.url("agreement")).content.decode()
        assert "most often given for one another" in page
        assert "Label against label" not in page
