"""Labels that come with the items of an import: whose they are, what counts, and how they go again."""

import json
from typing import Any

import pytest

from annotation.imports import job as import_job, labels as imported_labels
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.base import GivenLabel
from annotation.imports.labels import outside_name
from annotation.imports.undo import start_undo, undo_objection
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements, record_values
from annotation.labelling.queries import annotator_pace
from annotation.models import Job, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.people.queries import people
from annotation.review.agreement_queries import agreement
from routing.runs.pool import data_set_size, pool_of, size_of_pool
from testbed.factories import add_member, make_project, make_user
from tests.annotation.imports.test_imports import problems_of, storage, store

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    return make_project(choices=["cat", "dog"])


def choice(value: str, **fields: Any) -> dict[str, Any]:
    result = {"from_name": "l", "to_name": "t", "type": "choices", "value": {"choices": [value]}}
    return {"result": [result], "was_cancelled": False, **fields}


def task(number: int, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "data": {"text": f"text {number}"}, "annotations": list(annotations)}


def bring(project: Project, tasks: list[Any], *, keep: bool = True) -> Job:
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=store(project, json.dumps(tasks), "tasks.json"),
        mapping=ColumnMapping(text_column="text"),
        keep_labels=keep,
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def records(project: Project) -> dict[str, Any]:
    ids = dict(project.items.values_list("pk", "external_id"))
    return {ids[pk]: record.value for pk, record in record_values(project, list(ids)).items()}


def test_they_count_as_labels_of_people_and_keep_time_and_lead_time(project) -> None:
    made = choice(
        "cat", created_at="2024-05-06T07:08:09.5Z", lead_time=12.25, completed_by={"email": "a@b.c"}
    )
    job = bring(project, [task(1, made), task(2)])
    assert job.state == "done"
    assert (job.result["added"], job.result["labels"], job.result["labels_unread"]) == (2, 1, 0)
    label = Label.objects.get()
    assert (label.value, label.lead_time_ms) == ("cat", 12_250)
    assert label.created_at.isoformat() == "2024-05-06T07:08:09.500000+00:00"
    assert label.annotator.username == "a@b.c (Label Studio)"
    assert WorkItem.objects.get().state == "done"
    assert records(project) == {"1": "cat"}


def test_without_being_asked_for_none_is_kept(project) -> None:
    bring(project, [task(1, choice("cat", completed_by=1))], keep=False)
    assert not Label.objects.exists()
    assert not WorkBatch.objects.exists()


def test_members_are_known_by_username_or_address_and_nobody_else_is(project) -> None:
    ann = add_member(project, user=make_user("ann", email="Ann@Example.com"))
    bob = add_member(project, user=make_user("bob"))
    make_user("stranger", email="stranger@example.com")
    people_of = [{"email": "ann@example.com"}, "BOB", {"email": "stranger@example.com"}, 7, None]
    bring(project, [task(at, choice("cat", completed_by=who)) for at, who in enumerate(people_of)])
    given = Label.objects.order_by("item__position").values_list("annotator__username", flat=True)
    assert list(given) == [
        *(ann.username, bob.username),
        "stranger@example.com (Label Studio)",
        "user 7 (Label Studio)",
        "unknown (Label Studio)",
    ]


def test_who_stands_for_somebody_outside_can_never_log_in(project, client) -> None:
    bring(project, [task(1, choice("cat", completed_by=3))])
    account = User.objects.get(username=outside_name("user 3", "Label Studio"))
    assert not account.is_active
    assert not account.has_usable_password()
    assert not account.memberships.exists()
    assert len(outside_name("x" * 400, "Label Studio")) == 150


def test_a_file_that_names_somebody_else_in_every_row_makes_some_accounts_and_no_more(
    project, monkeypatch, django_assert_max_num_queries
) -> None:
    monkeypatch.setattr(imported_labels, "MOST_OUTSIDE", 20)
    monkeypatch.setattr(import_job, "CHUNK_ROWS", 40)
    before = User.objects.count()
    tasks = [task(at, choice("cat", completed_by=f"who {at}@x.y")) for at in range(100)]
    tasks.append(task(100, *(choice(value, completed_by=f"else {value}") for value in ("cat", "dog"))))
    with django_assert_max_num_queries(200):
        job = bring(project, tasks)
    assert User.objects.count() == before + 21
    assert not User.objects.filter(username__endswith=")", is_active=True).exists()
    assert all(not user.has_usable_password() for user in User.objects.filter(username__endswith=")"))
    assert job.result["labels"] == 101
    assert Label.objects.filter(annotator__username="unknown (Label Studio)").count() == 81
    assert [where for where, _message in problems_of(job)] == ["People"]
    assert records(project)["100"] == "dog"


def test_an_import_that_goes_on_counts_the_people_of_its_first_attempt(project, monkeypatch) -> None:
    monkeypatch.setattr(imported_labels, "MOST_OUTSIDE", 2)
    job = bring(project, [task(1, choice("cat", completed_by="a")), task(2, choice("cat", completed_by="b"))])
    keeper = imported_labels.LabelKeeper(project, job)
    given = [GivenLabel("cat", annotator=name, tool="Label Studio") for name in ("c", "b", "")]
    names = [User.objects.get(pk=pk).username for pk in keeper._annotators(given)]
    assert names == ["unknown (Label Studio)", "b (Label Studio)", "unknown (Label Studio)"]


def test_cancelled_ones_are_no_labels_and_unreadable_ones_are_told(project) -> None:
    cancelled = choice("cat") | {"was_cancelled": True}
    empty: dict[str, Any] = {"result": [], "was_cancelled": False}
    job = bring(project, [task(1, cancelled, choice("bird")), task(2, empty)])
    assert not Label.objects.exists()
    assert (job.result["labels_unread"], job.result["labels_left_out"]) == (2, 1)
    told = problems_of(job)
    assert [where for where, _ in told] == ["line 1, entry 1, label 1", "line 1, entry 2, label 1"]
    assert told[0][1] == "This label is not kept: it is no label of the project."
    assert told[1][1] == "This label is not kept: it is empty."


@pytest.mark.parametrize("task_type", ["single_choice", "multiple_choice", "number"])
def test_what_somebody_answered_is_not_repeated_to_whoever_reads_of_the_import(task_type) -> None:
    project = make_project(task_type=task_type, choices=["cat", "dog"] if "choice" in task_type else [])
    job = bring(project, [task(1, choice("platypus", completed_by=1))])
    ((_where, message),) = problems_of(job)
    assert "This label is not kept: it " in message
    assert "platypus" not in message


def test_of_several_choices_no_result_says_that_none_fits() -> None:
    project = make_project(task_type="multiple_choice", choices=["cat", "dog"])
    empty: dict[str, Any] = {"result": [], "was_cancelled": False, "completed_by": 1}
    job = bring(project, [task(1, empty), task(2, empty | {"was_cancelled": True})])
    assert (job.result["labels"], job.result["labels_unread"]) == (1, 0)
    assert records(project) == {"1": []}


def test_whole_ratings_are_the_choices_of_their_stars() -> None:
    project = make_project(choices=["1", "2", "3", "4", "5"])
    given = {"result": [{"from_name": "r", "type": "rating", "value": {"rating": 4.0}}]}
    least = {"text": "x", "id": 2, "r": 5.0, "annotator": 1, "annotation_id": 7, "lead_time": 1}
    bring(project, [task(1, given)])
    bring(project, [least])
    assert records(project) == {"1": "4", "2": "5"}


def test_of_one_persons_answers_the_last_counts(project) -> None:
    first = choice("cat", completed_by=1, created_at="2024-01-01T00:00:00Z")
    later = choice("dog", completed_by=1, created_at="2024-01-02T00:00:00Z")
    bring(project, [task(1, later, first)])
    assert [label.value for label in Label.objects.all()] == ["dog"]


def test_labels_without_a_name_are_different_peoples(project, monkeypatch) -> None:
    same = [choice("cat", created_at=f"2024-01-0{day}T00:00:00Z") for day in (1, 3)]
    other = choice("dog", created_at="2024-01-02T00:00:00Z")
    tasks = [task(1, *same, other), task(2, *same), task(3, choice("dog"), choice("dog", completed_by="ann"))]
    job = bring(project, tasks)
    given = Label.objects.order_by("item__position", "annotator__username")
    assert list(given.values_list("item__external_id", "annotator__username", "value")) == [
        ("1", "unknown (Label Studio)", "cat"),
        ("1", "unknown 2 (Label Studio)", "dog"),
        ("1", "unknown 3 (Label Studio)", "cat"),
        ("2", "unknown (Label Studio)", "cat"),
        ("2", "unknown 2 (Label Studio)", "cat"),
        ("3", "ann (Label Studio)", "dog"),
        ("3", "unknown (Label Studio)", "dog"),
    ]
    assert (job.result["labels"], problems_of(job)) == (7, [])
    assert records(project) == {"1": "cat", "2": "cat", "3": "dog"}
    assert not disagreements(project, project.created_by)
    # Two of three say the same of the first item, both of the second and of the third.
    assert agreement(project).together.equal.value == pytest.approx((1 / 3 + 1 + 1) / 3)
    bring(project, [task(4, choice("platypus"), choice("dog"), choice("cat"))])
    (waiting,) = disagreements(project, project.created_by)
    assert waiting.item.external_id == "4"
    names = Label.objects.filter(item=waiting.item).values_list("annotator__username", flat=True)
    assert set(names) == {"unknown 2 (Label Studio)", "unknown 3 (Label Studio)"}
    monkeypatch.setattr(imported_labels, "MOST_OUTSIDE", 2)
    texts = make_project(task_type="short_text", choices=[])
    text = {"from_name": "l", "to_name": "t", "type": "textarea"}
    many = [
        {"result": [text | {"value": {"text": [f"words {at}"]}}], "was_cancelled": False} for at in range(9)
    ]
    job = bring(texts, [task(1, *many)])
    assert job.result["labels"] == 3
    assert [where for where, _message in problems_of(job)] == ["People"]


def test_more_than_half_settle_an_item_and_the_rest_waits_for_a_reviewer(project) -> None:
    agree = [choice(value, completed_by=at) for at, value in enumerate(("cat", "dog", "cat"), 1)]
    differ = [choice(value, completed_by=at) for at, value in enumerate(("cat", "dog"), 1)]
    bring(project, [task(1, *agree), task(2, *differ), task(3, choice("dog", completed_by=1))])
    assert Settlement.objects.get().method == "majority"
    assert records(project) == {"1": "cat", "3": "dog"}
    (waiting,) = disagreements(project, project.created_by)
    assert waiting.item.external_id == "2"
    queue.adjudicate(batch=waiting.batch, item=waiting.item, actor=project.created_by, value="dog")
    assert records(project)["2"] == "dog"


def test_they_are_in_no_pool_and_allow_no_wrong_label_elsewhere(project) -> None:
    bring(project, [task(1, choice("cat", completed_by=1)), task(2), task(3)])
    for target in ("dataset", "pool"):
        assert list(pool_of(project, target).values_list("external_id", flat=True)) == ["2", "3"]
    assert size_of_pool(project, "dataset") == 2
    assert data_set_size(project, target="dataset", pool_size=2) is None


def test_an_item_about_which_they_differ_is_in_no_pool_as_a_reviewer_sees_what_they_said(project) -> None:
    differ = [choice(value, completed_by=at) for at, value in enumerate(("cat", "dog"), 1)]
    bring(project, [task(1, *differ), task(2)])
    assert list(pool_of(project, "dataset").values_list("external_id", flat=True)) == ["2"]
    assert size_of_pool(project, "dataset") == 1


def test_what_people_elsewhere_left_out_is_no_random_sample_of_a_population(project) -> None:
    """They may have been given the items that a model found hard."""
    bring(project, [task(1, choice("cat", completed_by=1)), task(2), task(3)])
    assert not pool_of(project, "population").exists()
    bring(project, [task(4), task(5)])
    assert list(pool_of(project, "population").values_list("external_id", flat=True)) == ["4", "5"]


def test_they_are_no_work_of_the_members_they_are_said_to_be_by(project) -> None:
    ann = add_member(project)
    bring(project, [task(at, choice("cat", completed_by=ann.username, lead_time=3)) for at in range(6)])
    assert Label.objects.filter(annotator=ann).count() == 6
    assert annotator_pace(project, ann).total == 0
    assert [person.work.labels for person in people(project) if person.user == ann] == [0]
    assert queue.undo(project=project, user=ann) is None


def test_a_chunk_that_is_added_twice_has_them_once(project) -> None:
    tasks = [task(1, choice("cat", completed_by=1))]
    bring(project, tasks)
    again = bring(project, tasks)
    assert (again.result["already_there"], again.result["labels"]) == (1, 0)
    assert Label.objects.count() == 1


class TestUndo:
    def test_they_go_with_the_items(self, project) -> None:
        agree = [choice("cat", completed_by=at) for at in (1, 2)]
        job = bring(project, [task(1, *agree), task(2, choice("dog", completed_by=1))])
        other = bring(project, [task(3, choice("dog", completed_by=1))])
        undo = start_undo(job=job, user=project.created_by)
        jobs.run(undo.pk)
        undo.refresh_from_db()
        assert (undo.state, undo.result) == ("done", {"removed": 2})
        assert list(project.items.values_list("external_id", flat=True)) == ["3"]
        assert records(project) == {"3": "dog"}
        assert [batch.imported_by for batch in WorkBatch.objects.all()] == [other]
        assert not Settlement.objects.exists()

    def test_not_once_somebody_decided_or_labelled(self, project) -> None:
        differ = [choice(value, completed_by=at) for at, value in enumerate(("cat", "dog"), 1)]
        job = bring(project, [task(1, *differ)])
        assert undo_objection(job) == ""
        (waiting,) = disagreements(project, project.created_by)
        queue.adjudicate(batch=waiting.batch, item=waiting.item, actor=project.created_by, value="dog")
        assert "rests on some of these items" in undo_objection(job)
