"""Items held out of every run: practice before the first item, gold among the others, and who is paused."""

from typing import Any

import pytest
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.labelling import gold, queue
from annotation.labelling.labels_of_record import disagreements, record_values
from annotation.labelling.practice import answer_practice, practice_state
from annotation.labelling.queries import waiting_for
from annotation.models import AuditEvent, HeldOutItem, Label, Membership, Project, User
from annotation.permissions import Access, access_to
from annotation.review.agreement_queries import agreement
from routing.held_out.manage import change_settings, hold_out, release, set_answer
from routing.held_out.results import people_checked
from routing.items.table import item_rows
from routing.label_set.replace import replace_label
from routing.models import PoolItem
from routing.runs.pool import nothing_to_plan_for, pool_of, size_of_pool
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world, rows_of
from tests.routing.by_people.people import answer, asked, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class World:
    def __init__(self, size: int = 40) -> None:
        self.project = make_project(choices=["cat", "dog"], guidelines="A cat purrs.")
        make_items(self.project, size)
        self.person = add_member(self.project)
        access = access_to(self.project.created_by, self.project.slug)
        assert access is not None
        self.lead: Access = access

    def names(self, first: int, count: int) -> list[str]:
        rows = self.project.items.order_by("position").values_list("external_id", flat=True)
        return list(rows[first : first + count])

    def known(self, purpose: str, count: int, **how: Any) -> list[HeldOutItem]:
        """Held out, with "cat" as the known answer."""
        how = how or {"size": count}
        made = hold_out(access=self.lead, purpose=purpose, entropy=3, **how)
        return [set_answer(access=self.lead, held=one, answer="cat", explanation="It purrs.") for one in made]

    def checked(self, *, share: float = 0.5, last: int = 5) -> list[HeldOutItem]:
        made = self.known("gold", 8)
        change_settings(access=self.lead, gold_share=share, gold_bar=0.8, gold_last=last)
        self.project.refresh_from_db()
        return made

    @property
    def membership(self) -> Membership:
        return Membership.objects.get(project=self.project, user=self.person)


@pytest.fixture
def world() -> World:
    return World()


class TestOutsideEveryRun:
    def test_no_pool_has_them_and_counts_are_right(self, world: World) -> None:
        held = {one.item_id for one in hold_out(access=world.lead, purpose="gold", size=6)}
        for target in ("population", "dataset", "pool"):
            assert not held & set(pool_of(world.project, target).values_list("pk", flat=True))
            assert size_of_pool(world.project, target) == pool_of(world.project, target).count() == 34

    def test_a_run_by_people_leaves_them_out_and_a_delivery_says_why(self, world: World) -> None:
        held = hold_out(access=world.lead, purpose="gold", names=world.names(0, 2))
        run = asked(world.project)
        assert not PoolItem.objects.filter(run=run, item__in=[one.item_id for one in held]).exists()
        assert run.pool_size == 38
        answer(world.project, world.person)
        run.refresh_from_db()
        rows = rows_of(run)
        blank = [row for row in rows if row.label is None]
        assert {row.external_id for row in blank} == {one.item.external_id for one in held}
        assert all("held out (gold)" in (row.reason or "") for row in blank)

    def test_named_ones_leave_no_random_sample_and_drawn_ones_do(self, world: World) -> None:
        hold_out(access=world.lead, purpose="gold", size=3)
        assert pool_of(world.project, "population").count() == 37
        hold_out(access=world.lead, purpose="practice", names=free(world, 1))
        assert not pool_of(world.project, "population").exists()
        assert "named items" in str(nothing_to_plan_for(world.project))
        assert pool_of(world.project, "dataset").count() == 36

    def test_where_all_is_held_out_the_plan_says_so(self, world: World) -> None:
        hold_out(access=world.lead, purpose="gold", size=40)
        assert "held out" in str(nothing_to_plan_for(world.project))

    def test_an_item_of_a_run_is_refused(self, world: World) -> None:
        asked(world.project)
        answer(world.project, world.person)
        with pytest.raises(InputError, match="a run covers it") as refused:
            hold_out(access=world.lead, purpose="gold", names=world.names(0, 1))
        assert refused.value.where == "names"
        with pytest.raises(InputError, match="There is no item"):
            hold_out(access=world.lead, purpose="gold", names=["nowhere"])

    def test_named_items_do_not_come_back_once_a_run_was_drawn_without_them(self) -> None:
        world = make_world(120)
        lead = access_to(world.manager, world.project.slug)
        names = list(world.project.items.order_by("position").values_list("external_id", flat=True)[:40])
        held = hold_out(access=lead, purpose="gold", names=names)
        world.start(m=30, target="dataset")
        with pytest.raises(ConflictError, match="no random sample"):
            release(access=lead, held=held[0])
        assert world.project.held_out.count() == 40

    def test_released_it_is_as_if_it_never_was_unless_drawn_or_known(self, world: World) -> None:
        named = hold_out(access=world.lead, purpose="practice", names=world.names(0, 1))[0]
        release(access=world.lead, held=named)
        assert pool_of(world.project, "population").count() == 40
        drawn = hold_out(access=world.lead, purpose="gold", size=1)[0]
        with pytest.raises(ConflictError, match="at random"):
            release(access=world.lead, held=drawn)
        seen = world.known("practice", 1, names=free(world, 1))[0]
        change_settings(access=world.lead, practice_first=True)
        answer_practice(project=world.lead.project, user=world.person, held_out_id=seen.pk, value="dog")
        with pytest.raises(ConflictError, match="they know it"):
            release(access=world.lead, held=seen)

    def test_the_table_finds_them(self, world: World) -> None:
        held = hold_out(access=world.lead, purpose="gold", size=3)
        found = item_rows(world.project, world.lead, filters={"stage": "held_out"})
        assert {row.external_id for row in found.rows} == {one.item.external_id for one in held}


def free(world: World, count: int) -> list[str]:
    rows = world.project.items.filter(held_out__isnull=True).order_by("position")
    return list(rows.values_list("external_id", flat=True)[:count])


class TestPractice:
    def test_no_other_item_comes_before_all_are_answered(self, world: World, client: Any) -> None:
        first, second = world.known("practice", 2, names=world.names(0, 2))
        change_settings(access=world.lead, practice_first=True)
        world.project.refresh_from_db()
        asked(world.project)
        assert queue.claim(project=world.project, user=world.person) is None
        client.force_login(world.person)
        address = reverse("practice", args=[world.project.slug])
        assert client.get(reverse("annotate", args=[world.project.slug]))["Location"] == address
        shown = page_of(client, "practice", world.project.slug)
        assert "1 of 2" in shown
        assert "It purrs." not in shown
        said = client.post(address, {"practice": first.pk, "value": "dog"}, follow=True).content.decode()
        assert "Not what was expected" in said
        assert "It purrs." in said
        said = client.post(address, {"practice": second.pk, "value": "cat"}, follow=True).content.decode()
        assert "Begin to label" in said
        assert queue.claim(project=world.project, user=world.person) is not None
        assert client.get(reverse("annotate", args=[world.project.slug])).status_code == 200
        assert not Label.objects.exists()

    def test_an_answer_is_given_once_and_by_annotators_alone(self, world: World) -> None:
        held = world.known("practice", 1, names=world.names(0, 1))[0]
        change_settings(access=world.lead, practice_first=True)
        world.project.refresh_from_db()
        for value in ("dog", "cat"):
            given = answer_practice(
                project=world.project, user=world.person, held_out_id=held.pk, value=value
            )
            assert given.value == "dog"
            assert not given.is_right
        assert practice_state(world.project, world.person).next is None
        asked(world.project)
        assert queue.claim(project=world.project, user=world.project.created_by) is not None

    def test_somebody_new_is_led_through_them_too(self, world: World) -> None:
        world.known("practice", 1, names=world.names(0, 1))
        change_settings(access=world.lead, practice_first=True)
        world.project.refresh_from_db()
        asked(world.project)
        late = add_member(world.project)
        assert queue.claim(project=world.project, user=late) is None

    def test_it_cannot_be_switched_on_without_a_known_answer(self, world: World) -> None:
        hold_out(access=world.lead, purpose="practice", names=world.names(0, 1))
        with pytest.raises(InputError, match="known answer"):
            change_settings(access=world.lead, practice_first=True)


class TestGold:
    def test_they_come_among_the_others_each_once_and_are_no_labels_of_record(self, world: World) -> None:
        held = {one.item.external_id for one in world.checked()}
        run = asked(world.project)
        named = answer(world.project, world.person, "cat")
        assert held & set(named)
        assert len(named) == len(set(named))
        assert 1 <= len(held & set(named)) <= len(held)
        ids = [one.item_id for one in world.project.held_out.all()]
        assert record_values(world.project, ids) == {}
        assert not disagreements(world.project, world.lead.user).exists()
        assert agreement(world.project).items == 0
        run.refresh_from_db()
        assert run.state == "complete"

    def test_without_an_ordinary_item_none_comes(self, world: World) -> None:
        world.checked()
        assert queue.claim(project=world.project, user=world.person) is None

    def test_on_the_page_nothing_but_the_item_is_otherwise(self, world: World, client: Any) -> None:
        held = {one.item.external_id for one in world.checked()}
        asked(world.project)
        client.force_login(world.person)
        seen: dict[bool, set[str]] = {True: set(), False: set()}
        for _turn in range(30):
            task = queue.claim(project=world.project, user=world.person)
            if task is None:
                break
            page = client.get(reverse("annotate", args=[world.project.slug])).content.decode()
            seen[task.item.external_id in held].add(bare(page, task))
            give(world.person, task, "cat")
        assert seen[True]
        # Each page of a gold item is one that some ordinary item has, too; among these there may be others.
        assert seen[True] <= seen[False]

    def test_no_number_of_items_handed_out_ahead_tells_that_the_last_is_gold(self, world: World) -> None:
        held = {one.item.external_id for one in world.checked()}
        asked(world.project)
        named = []
        for _turn in range(12):
            tasks = queue.claim_ahead(project=world.project, user=world.person)
            assert len(tasks) <= 1 + queue.MAX_AHEAD
            named.append(tasks[0].item.external_id)
            give(world.person, tasks[0], "cat")
        assert held & set(named), "it comes all the same"

    def test_who_is_below_the_bar_is_paused_and_may_go_on_when_told(self, world: World) -> None:
        world.checked(last=5)
        asked(world.project)
        done = answer(world.project, world.person, "dog")
        assert world.membership.paused_at is not None
        assert len(done) < 40
        assert waiting_for(world.project, world.person) == 0
        audited = AuditEvent.objects.get(action="member.paused")
        assert audited.data == {"right": 0, "of": 5}
        gold.resume(project=world.project, actor=world.lead.user, user=world.person)
        assert world.membership.paused_at is None
        assert queue.claim(project=world.project, user=world.person) is not None
        with pytest.raises(ConflictError, match="not paused"):
            gold.resume(project=world.project, actor=world.lead.user, user=world.person)

    def test_whoever_skips_the_gold_items_is_paused_too(self, world: World) -> None:
        held = {one.item.external_id for one in world.checked(last=5)}
        asked(world.project)
        skipped = 0
        while (task := queue.claim(project=world.project, user=world.person)) is not None:
            if task.item.external_id not in held:
                give(world.person, task, "cat")
                continue
            skipped += 1
            queue.skip(user=world.person, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
        assert world.membership.paused_at is not None
        assert skipped == 5
        shown = people_checked(world.project)[0]
        assert (shown.answered, shown.latest, shown.latest_right) == (0, 5, 0)

    def test_a_split_of_the_known_label_pauses_nobody_who_gives_one_of_its_parts(self, world: World) -> None:
        world.checked(share=0.5, last=5)
        replace_label(access=world.lead, key="cat", into=["tabby", "siamese"])
        world.project = Project.objects.get(pk=world.project.pk)
        asked(world.project)
        assert len(answer(world.project, world.person, "tabby")) >= 20
        assert world.membership.paused_at is None

    def test_who_is_right_goes_on(self, world: World) -> None:
        world.checked()
        asked(world.project)
        answer(world.project, world.person, "cat")
        assert world.membership.paused_at is None
        found = people_checked(world.project)[0]
        assert found.right == found.answered >= 1
        assert found.low is not None
        assert found.low < 1

    def test_a_paused_person_is_told_and_the_manager_sees_whom(self, world: World, client: Any) -> None:
        world.checked()
        asked(world.project)
        answer(world.project, world.person, "dog")
        client.force_login(world.person)
        assert "You are paused" in page_of(client, "annotate", world.project.slug)
        client.force_login(world.lead.user)
        assert "Let them go on" in page_of(client, "held_out", world.project.slug)
        assert "paused" in page_of(client, "overview", world.project.slug)
        client.post(reverse("person_resume", args=[world.project.slug, world.person.pk]))
        assert world.membership.paused_at is None

    def test_fewer_known_answers_than_are_looked_at_are_refused(self, world: World) -> None:
        world.known("gold", 4)
        with pytest.raises(InputError, match="4 gold items"):
            change_settings(access=world.lead, gold_share=0.05, gold_last=20)


class TestProgramsAndPages:
    def test_a_manager_does_it_all_by_the_page(self, world: World, client: Any) -> None:
        client.force_login(world.lead.user)
        slug = world.project.slug
        sent = {"purpose": "gold", "names": "\n".join(world.names(0, 5))}
        assert client.post(reverse("held_out", args=[slug]), sent).status_code == 302
        for one in world.project.held_out.all():
            client.post(reverse("held_out_answer", args=[slug, one.pk]), {"value": "dog"})
        wanted = {"gold_share": "5", "gold_bar": "80", "gold_last": "5"}
        assert client.post(reverse("held_out_settings", args=[slug]), wanted).status_code == 302
        world.project.refresh_from_db()
        assert world.project.gold_share == pytest.approx(0.05)
        assert set(world.project.held_out.values_list("answer", flat=True)) == {"dog"}
        first = world.project.held_out.first()
        assert first is not None
        client.post(reverse("held_out_release", args=[slug, first.pk]))
        assert world.project.held_out.count() == 4

    def test_and_by_the_api(self, world: World, client: Any) -> None:
        client.force_login(world.lead.user)
        base = f"/api/v1/projects/{world.project.slug}"
        made = client.post(
            f"{base}/held-out/",
            {"purpose": "practice", "names": world.names(0, 1)},
            content_type="application/json",
        )
        assert made.status_code == 201, made.content
        held = made.json()[0]["id"]
        told = client.put(
            f"{base}/held-out/{held}/",
            {"answer": "cat", "explanation": "It purrs."},
            content_type="application/json",
        )
        assert told.json()["answer"] == "cat"
        on = client.patch(f"{base}/checking/", {"practice_first": True}, content_type="application/json")
        assert on.json()["practice_first"] is True
        client.force_login(world.person)
        assert client.get(f"{base}/held-out/").status_code == 403
        assert client.get(f"{base}/practice/").json()["next"]["practice"] == held
        said = client.post(
            f"{base}/practice/", {"practice": held, "value": "dog"}, content_type="application/json"
        )
        assert said.json()["answer"] == "cat"
        assert said.json()["is_right"] is False

    @pytest.mark.parametrize("bar", [False, True, "0.5", "nan", 10**400], ids=lambda bar: repr(bar)[:9])
    def test_a_share_is_a_number(self, world: World, client: Any, bar: Any) -> None:
        client.force_login(world.lead.user)
        address = f"/api/v1/projects/{world.project.slug}/checking/"
        before = client.get(address).json()
        for name in ("gold_bar", "gold_share"):
            refused = client.patch(address, {name: bar}, content_type="application/json")
            assert refused.status_code == 400
            assert [fault["field"] for fault in refused.json()["faults"]] == [name]
        assert client.get(address).json() == before


def give(user: User, task: queue.LeasedItem, value: str) -> None:
    queue.submit(
        user=user,
        work_item_id=task.work_item.pk,
        token=task.token,
        value=value,
        idempotency_key=f"{task.work_item.pk}".ljust(32, "k"),
    )


def bare(page: str, task: queue.LeasedItem) -> str:
    """The page's form without what is the item's own: name, text, number, token, and what is counted."""
    start = page.index('<p id="task-note"')
    shown = page[start : page.index('<div class="task-tools">')]
    for own in (task.item.text, task.item.short_name, task.token, f'value="{task.work_item.pk}"'):
        shown = shown.replace(own, "")
    before, _mark, after = shown.partition('name="idempotency_key" value="')
    head, _mark, rest = before.partition('name="csrfmiddlewaretoken" value="')
    return head + rest[64:] + after[32:]
