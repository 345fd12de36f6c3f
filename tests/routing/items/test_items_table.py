"""The table of items: what its filters find, how its orders page, and what neither may tell."""

import itertools
import json

import pytest

from annotation.errors import InputError
from annotation.labelling import queue
from annotation.labelling.comments import add_comment, resolve_flag
from annotation.labelling.settlement import adjudicate
from annotation.models import Comment, Label, Settlement, WorkItem
from annotation.permissions import access_to
from routing.items.filters import FILTERS, HiddenError
from routing.items.sorts import NAMES
from routing.items.table import blocking_filters, item_rows, neighbours
from routing.visibility import view_permission
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import NUMBERS, SETS, make_world, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def manager_of(world):
    return access_to(world.manager, world.project.slug)


def found(project, access, size=200, **filters):
    page = item_rows(project, access, filters=filters, size=size)
    assert page.total.count == len(page.rows)
    return {row.external_id for row in page.rows}


@pytest.mark.parametrize("answers", [None, NUMBERS, SETS], ids=["choice", "number", "several"])
def test_the_table_and_its_filters_agree_with_a_delivery_on_every_item(answers):
    world = make_world(120, **({"answers": answers} if answers else {}))
    run = world.routed(m=40)
    world.label(limit=15)
    access = manager_of(world)
    delivery = {row.external_id: row for row in rows_of(run)}
    rows = {row.external_id: row for row in item_rows(world.project, access, size=200).rows}
    assert set(rows) == set(delivery)
    for name, row in rows.items():
        assert (row.label, row.given_by, row.annotator) == (
            delivery[name].label,
            delivery[name].source,
            delivery[name].annotator,
        )
    by = {"person": "person", "1": "Model 1", "2": "Model 2", "nobody": None}
    for value, source in by.items():
        expected = {name for name, row in delivery.items() if row.source == source}
        assert found(world.project, access, by=value) == expected, value
    labels = {json.dumps(row.label) for row in delivery.values() if row.label is not None}
    for text in sorted(labels)[:4]:
        label = json.loads(text)
        if isinstance(label, list):
            continue
        expected = {name for name, row in delivery.items() if row.label == label}
        assert found(world.project, access, label=label) == expected
    if answers is SETS:
        expected = {name for name, row in delivery.items() if row.label and "emu" in row.label}
        assert found(world.project, access, label="emu") == expected


def test_stages_and_sources():
    world = make_world(120)
    run = world.routed(m=40)
    waiting = {
        work.item.external_id
        for work in WorkItem.objects.filter(batch=run.routed_batch, state="open").select_related("item")
    }
    assert waiting
    access = manager_of(world)
    assert found(world.project, access, stage="waiting") == waiting
    assert found(world.project, access, sent="person") >= waiting
    labelled = set(Label.objects.values_list("item__external_id", flat=True))
    assert found(world.project, access, stage="labelled") == labelled
    everything = {f"t{n}" for n in range(120)}
    assert found(world.project, access, stage="unlabelled") == everything - labelled
    sent = [found(world.project, access, sent=value) for value in ("1", "2", "person")]
    assert set.union(*sent) == everything
    assert sum(map(len, sent)) == 120
    assert found(world.project, access, stage="unlabelable") == set()
    first = WorkItem.objects.filter(batch=run.routed_batch, state="open")[0]
    world.label(answer=lambda item: None if item.pk == first.item_id else world.truth[item.external_id])
    # The manager could still label it: it is stuck once nobody is left.
    while task := queue.claim(project=world.project, user=world.manager):
        queue.skip(user=world.manager, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    assert found(world.project, access, stage="stuck") == {first.item.external_id}
    queue.give_up(work_item=first, actor=world.manager)
    assert found(world.project, access, stage="unlabelable") == {first.item.external_id}
    assert found(world.project, access, by="nobody") == {first.item.external_id}


def test_answers_scores_and_differences_of_sources():
    world = make_world(120)
    run = world.routed(m=40)
    access = manager_of(world)
    told = {item.external_id: item.data for item in world.project.items.all()}
    expected = {name for name, data in told.items() if data["model1"] == "emu"}
    assert found(world.project, access, answer="1:emu") == expected
    low = found(world.project, access, u_from="0.25", u_to="0.5")
    assert low == {
        name for name, data in told.items() if 0.25 <= round(1 - float(data["confidence1"]), 9) <= 0.5
    }
    asked_second = found(world.project, access, answer="2:cat") | found(world.project, access, answer="2:dog")
    asked_second |= found(world.project, access, answer="2:emu")
    differ = {name for name in asked_second if told[name]["model1"] != told[name]["model2"]}
    assert differ
    assert found(world.project, access, differ="sources") == differ
    assert found(world.project, access, differ="sources", answer="1:emu") == differ & expected
    assert run.number == 1


def test_what_people_said_and_on_what_they_differ():
    project = make_project(choices=("cat", "dog"))
    items = make_items(project, ["same", "same", "other", "last"])
    owner, ann, bob = project.created_by, add_member(project), add_member(project)
    access = access_to(owner, project.slug)
    numbers = itertools.count()
    for user, values in ((ann, "cat dog cat"), (bob, "cat cat dog")):
        queue.create_batch(
            project=project, item_ids=[item.pk for item in items[:3]], blind=False, priority=1, entropy=1
        )
        answers = dict(zip((item.pk for item in items), values.split(), strict=False))
        while task := queue.claim(project=project, user=user):
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=answers[task.item.pk],
                idempotency_key=f"k{next(numbers)}",
            )
    assert found(project, access, annotator=str(ann.pk)) == {"t0", "t1", "t2"}
    assert found(project, access, annotator=str(owner.pk)) == set()
    assert found(project, access, human="dog") == {"t1", "t2"}
    # The newest one counts: Bob's.
    assert found(project, access, label="dog") == {"t2"}
    assert found(project, access, differ="people") == {"t1", "t2"}
    assert found(project, access, same="any") == {"t0", "t1"}
    add_comment(item=items[3], author=ann, text="odd")
    flag = add_comment(item=items[2], author=ann, text="", is_flag=True)
    assert found(project, access, comment="any") == {"t3"}
    assert found(project, access, flag="open") == {"t2"}
    resolve_flag(comment=flag, actor=owner)
    assert found(project, access, flag="open") == set()
    assert found(project, access, flag="resolved") == {"t2"}
    assert found(project, access, q="OTHER") == {"t2"}
    assert found(project, access, q="t3") == {"t3"}
    assert found(project, access, differ="people", human="dog", q="same") == {"t1"}
    permission = view_permission(project, access)
    assert blocking_filters(permission, {"q": "same", "flag": "resolved"}) == ["q", "flag"]
    assert blocking_filters(permission, {"q": "nowhere", "flag": "resolved"}) == ["q"]


def test_a_label_with_a_nul_is_refused_as_any_that_there_is_not():
    """PostgreSQL would not even look for it."""
    project = make_project(choices=("cat", "dog"))
    with pytest.raises(InputError, match="NUL"):
        found(project, access_to(project.created_by, project.slug), human="dog\0")


def test_settled_labels_are_the_ones_that_are_delivered():
    project = make_project(choices=("cat", "dog"))
    items = make_items(project, 5)
    people = [add_member(project) for _ in range(2)]
    access = access_to(project.created_by, project.slug)
    batch = queue.create_batch(
        project=project, item_ids=[i.pk for i in items[:4]], blind=False, priority=1, entropy=1, overlap=2
    )
    said = {"t0": "cat cat", "t1": "cat dog", "t2": "dog cat", "t3": "dog"}
    for index, user in enumerate(people):
        while task := queue.claim(project=project, user=user):
            given = said[task.item.external_id].split()
            if index >= len(given):
                queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
                continue
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=given[index],
                idempotency_key=f"k{task.work_item.pk}",
            )
    assert found(project, access, stage="disputed") == {"t1", "t2"}
    adjudicate(batch=batch, item=items[1], actor=project.created_by, value="dog")
    assert found(project, access, stage="disputed") == {"t2"}
    assert found(project, access, label="cat") == {"t0"}
    assert found(project, access, label="dog") == {"t1"}
    assert found(project, access, by="person") == {"t0", "t1"}
    assert found(project, access, stage="labelled") == {"t0", "t1", "t2", "t3"}
    rows = {row.external_id: row for row in item_rows(project, access).rows}
    assert {name: row.label for name, row in rows.items()} == {
        "t0": "cat",
        "t1": "dog",
        "t2": None,
        "t3": None,
        "t4": None,
    }
    # A later label of one person goes before what was settled earlier.
    queue.create_batch(project=project, item_ids=[items[1].pk], blind=False, priority=1, entropy=2)
    task = queue.claim(project=project, user=people[0])
    queue.submit(
        user=people[0],
        work_item_id=task.work_item.pk,
        token=task.token,
        value="cat",
        idempotency_key="last",
    )
    assert found(project, access, label="cat") == {"t0", "t1"}
    assert found(project, access, label="dog") == set()


@pytest.mark.parametrize("sort", NAMES)
def test_each_order_pages_both_ways_and_leaves_nothing_out(sort):
    world = make_world(60)
    world.complete(m=40)
    access = manager_of(world)
    whole = [row.id for row in item_rows(world.project, access, sort=sort, size=200).rows]
    key = {
        "position": lambda row: row.position,
        "name": lambda row: row.external_id,
        "u": lambda row: row.uncertainty,
        "label": lambda row: row.labelled_at,
        "time": lambda row: row.seconds,
    }[sort.removeprefix("-")]
    rows = item_rows(world.project, access, sort=sort, size=200).rows
    keys = [key(row) for row in rows]
    assert keys == sorted(keys, reverse=sort.startswith("-"))
    seen, page = [], item_rows(world.project, access, sort=sort, size=7)
    assert page.previous is None
    pages = [page]
    while page.next is not None:
        page = item_rows(world.project, access, sort=sort, size=7, after=page.next)
        pages.append(page)
    seen = [row.id for page in pages for row in page.rows]
    assert seen == whole
    if len(pages) > 1:
        back = item_rows(world.project, access, sort=sort, size=7, before=pages[-1].previous)
        assert [row.id for row in back.rows] == [row.id for row in pages[-2].rows]
        permission = view_permission(world.project, access)
        item = world.project.items.get(pk=whole[7])
        assert neighbours(permission, item, filters={}, sort=sort) == (whole[6], whole[8])


def test_the_time_spent_is_an_order():
    project = make_project()
    make_items(project, 5)
    ann = add_member(project)
    ids = list(project.items.values_list("pk", flat=True))
    queue.create_batch(project=project, item_ids=ids, blind=False, priority=1, entropy=1)
    for spent in (300, 100, 200, None, 100):
        task = queue.claim(project=project, user=ann)
        queue.submit(
            user=ann,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key=f"k{task.item.pk}",
            lead_time_ms=spent,
        )
    access = access_to(project.created_by, project.slug)
    page = item_rows(project, access, sort="-time", size=2)
    assert [row.seconds for row in page.rows] == [0.3, 0.2]
    rest = item_rows(project, access, sort="-time", size=5, after=page.next)
    assert [row.seconds for row in rest.rows] == [0.1, 0.1]
    assert page.total.count == 4


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "[1,2]", '["a"]', "[true]", "[1e999]", "{}", "[" * 5000, "[9223372036854775808]"]
)
def test_a_place_that_is_none_means_the_beginning(text):
    project = make_project()
    make_items(project, 3)
    access = access_to(project.created_by, project.slug)
    for sort in ("position", "name"):
        if not (sort == "name" and text == '["a"]'):
            assert len(item_rows(project, access, sort=sort, after=text).rows) == 3


# --- Blindness ----------------------------------------------------------------------------------------------

TELLING = {
    "by": ["1", "2", "nobody"],
    "sent": ["1", "2", "person"],
    "answer": ["1:cat"],
    "u_from": ["0.5"],
    "u_to": ["0.5"],
    "differ": ["sources"],
}
# What can be asked at any time, but of what may be seen only: it finds nothing that is in the hidden batch.
NOTHING = {
    "stage": ["labelled", "waiting", "stuck", "disputed", "unlabelable", "withdrawn"],
    "by": ["person"],
    "label": ["cat", "dog", "emu"],
    "human": ["cat", "dog", "emu"],
    "flag": ["open", "resolved"],
    "comment": ["any"],
    "differ": ["people"],
}


def hidden_world():
    """A run at its calibration, with labels, flags, comments and items given up in the hidden batch."""
    world = make_world(100)
    run = world.start(m=40)
    world.do("prepare_run")
    world.label(limit=20, answer=lambda item: world.truth[item.external_id])
    work = WorkItem.objects.filter(batch=run.calibration_batch_id or world.project.work_batches.get().pk)
    open_ = list(work.filter(state="open").select_related("item"))
    ann = world.annotators[0]
    add_comment(item=open_[0].item, author=ann, text="odd", is_flag=True, work_item=open_[0])
    flag = add_comment(item=open_[1].item, author=ann, text="too", is_flag=True, work_item=open_[1])
    resolve_flag(comment=flag, actor=world.manager)
    queue.give_up(work_item=open_[2], actor=world.manager)
    for user in (*world.annotators, world.manager):
        if task := queue.claim(project=world.project, user=user):
            queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    done = work.filter(state="done")[0]
    Settlement.objects.create(batch=done.batch, item=done.item, value="cat", method="majority")
    return world


def test_no_filter_and_no_order_tells_anything_before_the_analysis():
    world = hidden_world()
    roles = [world.manager, add_member(world.project, "viewer"), add_member(world.project, "reviewer")]
    for user in roles:
        access = access_to(user, world.project.slug)
        for name, values in TELLING.items():
            for value in values:
                with pytest.raises(HiddenError):
                    item_rows(world.project, access, filters={name: value})
        for name, values in NOTHING.items():
            for value in values:
                assert found(world.project, access, **{name: value}) == set(), (name, value)
        for person in (*world.annotators, world.manager):
            assert found(world.project, access, annotator=str(person.pk)) == set()
        assert len(found(world.project, access, stage="unlabelled")) == 100
        for sort in ("u", "-u"):
            with pytest.raises(HiddenError):
                item_rows(world.project, access, sort=sort)
        for sort in ("label", "-label", "time", "-time"):
            assert item_rows(world.project, access, sort=sort).rows == []
        for row in item_rows(world.project, access, size=200).rows:
            assert (row.label, row.given_by, row.annotator, row.reason) == (None,) * 4
            assert (row.uncertainty, row.routed_to, row.labelled_at, row.seconds) == (None,) * 4
            assert row.flags == 0
    # Every filter is in one of the tables, so that a new one has to be thought about.
    assert {*TELLING, *NOTHING, "q", "annotator", "same"} == set(FILTERS)
    assert Comment.objects.count() == 2


def test_reviewers_may_never_ask_what_models_said():
    world = make_world(100)
    world.complete(m=40)
    access = access_to(add_member(world.project, "reviewer"), world.project.slug)
    for name, values in TELLING.items():
        for value in values:
            with pytest.raises(HiddenError):
                item_rows(world.project, access, filters={name: value})
    with pytest.raises(HiddenError):
        item_rows(world.project, access, sort="u")
    people = {label.item.external_id for label in Label.objects.select_related("item")}
    assert {row.external_id for row in item_rows(world.project, access, size=200).rows if row.label} == people
    cats = set(Label.objects.filter(value="cat").values_list("item__external_id", flat=True))
    # Not even through the label that is delivered: of the models' they find none.
    assert found(world.project, access, label="cat") == cats


def test_a_second_run_closes_what_the_first_one_opened():
    world = make_world(240)
    world.complete(m=40)
    access = manager_of(world)
    assert item_rows(world.project, access, sort="u").rows
    make_items(world.project, ["new"] * 80)
    world.start(m=40)
    with pytest.raises(HiddenError):
        item_rows(world.project, access, sort="u")
    with pytest.raises(HiddenError):
        item_rows(world.project, access, filters={"answer": "1:cat"})
    assert all(row.given_by in (None, "person") for row in item_rows(world.project, access, size=200).rows)
