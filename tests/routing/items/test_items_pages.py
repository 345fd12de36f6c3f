"""The table of items and the page of one item, as people see them."""

import re
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import Comment, Item, Label
from routing.runs.cancel import cancel_run
from testbed.factories import add_member, make_image_items, make_items, make_project
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
HOSTILE = '<img src=x onerror=alert(1)><b hx-get="/x">'


@pytest.fixture
def routed(db: None) -> World:
    world = make_world(60)
    world.routed(m=40)
    return world


def client_as(project, role: str) -> Client:
    client = Client()
    client.force_login(add_member(project, role))
    return client


def main_of(answer) -> str:
    page = answer.content.decode()
    return page[page.index('<main id="main"') :]


def table(client: Client, project, **query: str) -> str:
    return main_of(client.get(reverse("items", args=[project.slug]), query))


def names(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*><bdi>([^<]*)</bdi>', page)


# --- The table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [{"after": "garbage"}, {"before": '["t1"]'}, {"after": "[1,2]"}])
def test_a_place_that_is_none_is_told_beside_the_first_page(project, owner, place) -> None:
    make_items(project, 3)
    page = table(owner, project, **place)
    assert names(page) == ["t0", "t1", "t2"]
    assert "The address names a place that is none in this order." in page
    assert "names a place" not in table(owner, project, after="[0]")


def test_filters_are_in_the_address_and_each_can_be_taken_away(project, owner) -> None:
    make_items(project, ["red cat", "blue cat", "red dog"])
    page = table(owner, project, q="red", stage="unlabelled", sort="-name")
    assert names(page) == ["t2", "t0"]
    assert "2 items match" in page
    without_q, without_stage = re.findall(r'<a href="\?([^"]*)" aria-label="Take away', page)
    assert without_q == "stage=unlabelled&amp;sort=-name"
    assert without_stage == "q=red&amp;sort=-name"
    assert 'value="red"' in page
    assert '<option value="unlabelled" selected>' in page
    # The way to an item and to the next page keep them.
    assert "?q=red&amp;stage=unlabelled&amp;sort=-name" in page


def test_where_nothing_matches_it_says_which_filter_to_take_away(project, owner) -> None:
    make_items(project, ["red cat", "blue cat"])
    page = table(owner, project, q="red", stage="labelled")
    assert "Nothing matches" in page
    assert "once one of these filters is taken away" in page
    assert re.findall(r'<a role="button" class="secondary" href="\?([^"]*)">', page) == ["q=red"]
    assert "Taking one filter away is not enough" in table(owner, project, q="green", stage="labelled")
    assert "once one of these filters is taken away" in table(owner, project, q="green")


def test_a_page_without_rows_behind_others_does_not_say_that_nothing_matches(project, owner) -> None:
    make_items(project, ["red cat", "blue cat", "blue dog"])
    page = table(owner, project, q="red", after="[1]")
    assert names(page) == []
    assert "Nothing matches" not in page
    assert "take away" not in page
    assert re.findall(r'<a role="button" class="secondary" href="\?([^"]*)">', page) == ["q=red"]
    assert "Nothing more" in table(owner, project, after="[2]")


def test_what_cannot_be_used_is_left_out_and_said(project, owner) -> None:
    make_items(project, 3)
    page = table(owner, project, stage="nowhere", answer="1:cat", sort="u", u_from="0.5", label="horse")
    assert len(names(page)) == 3
    assert "Where it is: There is no such filter" in page
    assert "There is no such label" in page
    for title in ("Answer of a source", "Uncertainty from", "Least uncertain first"):
        assert f"“{title}” would tell what may not be seen now" in page


def test_pages_follow_each_other_in_every_order(project, owner) -> None:
    make_items(project, [f"text {n}" for n in range(120)])
    for sort in ("position", "-position", "name", "-name"):
        address, seen = f"?sort={sort}", []
        while address:
            page = main_of(owner.get(reverse("items", args=[project.slug]) + address))
            seen += names(page)
            found = re.search(r'rel="next" href="([^"]*)"', page)
            address = found[1].replace("&amp;", "&") if found else ""
        assert len(seen) == len(set(seen)) == 120
    # Counting takes longer than the page: it is asked for by it, and says how many there are on all pages.
    assert 'hx-get="?sort=-name&amp;count=1"' in page
    counted = owner.get(reverse("items", args=[project.slug]), {"count": 1}, headers={"HX-Request": "true"})
    assert ">120 items</p>" in counted.content.decode()
    assert "<html" not in counted.content.decode()


def test_columns_are_chosen_in_the_address(routed) -> None:
    client = client_as(routed.project, "manager")
    heads = lambda page: re.findall(r"<th[^>]*>([^<]+)</th>", page[: page.index("<tbody")])  # noqa: E731
    assert heads(table(client, routed.project)) == [
        "Name", "Text", "Delivered label", "Given by", "Uncertainty", "Sent to", "Flags",
    ]  # fmt: skip
    some = main_of(client.get(reverse("items", args=[routed.project.slug]) + "?col=label&col=time"))
    assert heads(some) == ["Name", "Text", "Delivered label", "Time spent"]
    blind = main_of(
        client_as(routed.project, "reviewer").get(
            reverse("items", args=[routed.project.slug]) + "?col=u&col=sent&col=flags"
        )
    )
    assert heads(blind) == ["Name", "Text", "Flags"]


def test_a_models_label_is_marked_as_one(routed) -> None:
    page = table(client_as(routed.project, "viewer"), routed.project, by="1")
    assert "<bdi>Model 1</bdi>" in page
    assert ">model</span>" in page
    assert "change-bar" not in page  # viewers change nothing


def test_hostile_content_stays_text(client_of) -> None:
    project = make_project(choices=(HOSTILE[:60], "dog"))
    item = make_items(project, [HOSTILE], data={HOSTILE: HOSTILE})[0]
    project.columns = [HOSTILE]
    project.save()
    client = client_of(project.created_by)
    add_comment(item=item, author=project.created_by, text=HOSTILE, is_flag=True)
    Item.objects.filter(pk=item.pk).update(external_id=HOSTILE)
    slug = project.slug
    pages = [
        client.get(reverse("items", args=[slug]), {"q": HOSTILE}),
        client.get(reverse("item", args=[slug, item.pk]), {"q": HOSTILE}),
        client.post(
            f"{reverse('items_change', args=[slug])}?{urlencode({'q': HOSTILE})}",
            {"change": "flag", "which": "all", "text": HOSTILE},
        ),
    ]
    for page in pages:
        body = main_of(page)
        assert "&lt;img src=x" in body
        assert "<img src=x" not in body
        assert '<b hx-get="/x">' not in body
    # What is shown of items is inside elements that htmx leaves alone.
    assert "<tbody hx-disable>" in main_of(pages[0])
    assert "<li hx-disable>" in main_of(pages[0])


# --- One item -----------------------------------------------------------------------------------------------


def test_the_page_of_an_item_tells_its_whole_history(routed) -> None:
    project = routed.project
    routed.finish()
    client = Client()
    client.force_login(routed.manager)
    label = Label.objects.select_related("item", "annotator", "work_item").last()
    queue.correct(
        user=label.annotator,
        label_id=label.pk,
        value="emu" if label.value != "emu" else "cat",
        idempotency_key="new",
        comment="mistyped",
    )
    flag = add_comment(item=label.item, author=routed.annotators[0], text="look", is_flag=True)
    page = main_of(client.get(reverse("item", args=[project.slug, label.item_id])))
    for words in (
        "mistyped", "replaced", "look", "Model 1", "Fingerprint", "In run 1", "Stays with", "In the draw",
        "confidence1", "Audit trail", "item.flagged", "All that was stored", "Raw answer",
    ):  # fmt: skip
        assert words in page, words
    resolve = reverse("item_flag_resolve", args=[project.slug, label.item_id, flag.pk])
    assert resolve in page
    client.post(resolve)
    flag.refresh_from_db()
    assert flag.resolved_by == routed.manager
    comment = reverse("item_comment", args=[project.slug, label.item_id])
    client.post(comment, {"text": "thanks"})
    client.post(comment, {"text": "", "flag": "yes"})
    client.post(comment, {"text": " "})
    written = Comment.objects.filter(item=label.item, author=routed.manager).values_list("text", "is_flag")
    assert list(written) == [("thanks", False), ("", True)]
    viewer = client_as(project, "viewer")
    page = main_of(viewer.get(reverse("item", args=[project.slug, label.item_id])))
    assert comment not in page
    assert "Audit trail" not in page


def test_previous_and_next_stay_within_what_the_table_lists(project, owner) -> None:
    items = make_items(project, ["red", "blue", "red", "blue", "red"])
    page = main_of(
        owner.get(reverse("item", args=[project.slug, items[2].pk]), {"q": "red", "sort": "-name"})
    )
    links = dict(re.findall(r'rel="(prev|next)" href="([^"?]*)', page))
    assert links == {
        "prev": reverse("item", args=[project.slug, items[4].pk]),
        "next": reverse("item", args=[project.slug, items[0].pk]),
    }
    assert f"{reverse('items', args=[project.slug])}?q=red&amp;sort=-name" in page


def test_comments_and_decisions_of_a_hidden_batch_are_not_on_the_page() -> None:
    world = make_world(60)
    world.start(m=40)
    world.do("prepare_run")
    task = queue.claim(project=world.project, user=world.annotators[0])
    item = task.work_item.item
    flag = add_comment(
        item=item, author=world.annotators[0], text="secretly odd", is_flag=True, work_item=task.work_item
    )
    queue.skip(
        user=world.annotators[0],
        work_item_id=task.work_item.pk,
        token=task.token,
        reason="broken",
        comment="cannot see",
    )
    queue.give_up(work_item=task.work_item, actor=world.manager)
    client = Client()
    client.force_login(world.manager)
    page = main_of(client.get(reverse("item", args=[world.project.slug, item.pk])))
    for words in ("secretly odd", "cannot see", "work.given_up", "Skipped by", "Answers of the models"):
        assert words not in page, words
    resolve = reverse("item_flag_resolve", args=[world.project.slug, item.pk, flag.pk])
    assert client.post(resolve).status_code == 404
    # Nor does the audit trail tell of which item they were.
    event = world.project.audit_events.get(action="work.given_up")
    assert event.target == f"work_item:{task.work_item.pk}"
    # Once the batch is no longer hidden they are there.
    cancel_run(run=world.project.runs.get(), user=world.manager)
    page = main_of(client.get(reverse("item", args=[world.project.slug, item.pk])))
    for words in ("secretly odd", "cannot see", "work.given_up"):
        assert words in page, words


# --- Beside the table ---------------------------------------------------------------------------------------


def test_the_item_beside_the_table_is_a_part_of_a_page_and_tells_no_more_than_its_page(db) -> None:
    world = make_world(60)
    world.calibrating(m=40)
    item = world.project.items.earliest("pk")
    Item.objects.filter(pk=item.pk).update(text=HOSTILE)
    address = reverse("item", args=[world.project.slug, item.pk])
    client = Client()
    client.force_login(world.manager)
    answer = client.get(address, {"beside": 1, "sort": "-name"}, headers={"HX-Request": "true"})
    part = answer.content.decode()
    assert "<html" not in part
    assert f'href="{address}?sort=-name"' in part
    assert "<img src=x" not in part
    # Before the analysis nothing of a model is in it.
    assert "Answers of the models" not in part
    # Without htmx the same address is the page.
    assert "<html" in client.get(address, {"beside": 1}).content.decode()


def test_labels_have_the_colours_of_their_choices(routed) -> None:
    client = Client()
    client.force_login(routed.manager)
    routed.project.choices.update(color="#123456")
    page = table(client, routed.project)
    assert 'fill="#123456"' in page


def test_a_gallery_is_kept_in_the_address(project, owner) -> None:
    make_image_items(project, 2)
    assert 'href="?look=gallery"' in table(owner, project)
    page = table(owner, project, look="gallery", sort="-name")
    assert 'class="items-table gallery"' in page
    assert 'href="?sort=-name">Rows</a>' in page
