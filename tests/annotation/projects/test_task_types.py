"""Projects that ask for something else than one choice: made, and answered through the queue."""

from typing import Any

import pytest

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.labelling.label_queries import label_in_words, with_choice
from annotation.models import Draft, Item, Label, Project, User
from annotation.projects.manage import ChoiceSpec, create_project, set_choices, update_project
from annotation.task_types import TASK_TYPES
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = pytest.mark.django_db
OTHERS = [name for name, kind in TASK_TYPES.items() if not kind.has_labels]


def asking(task_type: str, texts: int = 2) -> tuple[Project, User, list[Item]]:
    choices = ("cat", "dog", "a \"b\"") if task_type.endswith("_choice") else ()  # fmt: skip
    project = make_project(task_type=task_type, choices=choices)
    items = make_items(project, texts)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=1
    )
    return project, add_member(project), items


def answer(project: Project, user: User, value: Any, key: str = "k1") -> Label:
    task = queue.claim(project=project, user=user)
    assert task is not None
    return queue.submit(
        user=user, work_item_id=task.work_item.pk, token=task.token, value=value, idempotency_key=key
    )


@pytest.mark.parametrize("task_type", OTHERS)
def test_a_project_without_choices_has_none(task_type):
    project = make_project(task_type=task_type, choices=())
    assert not project.choices.exists()
    with pytest.raises(InputError) as refused:
        make_project(task_type=task_type, choices=("a", "b"))
    assert refused.value.where == "choices"
    with pytest.raises(InputError):
        set_choices(project=project, user=project.created_by, choices=[ChoiceSpec("a"), ChoiceSpec("b")])


@pytest.mark.parametrize("task_type", ["single_choice", "multiple_choice"])
def test_where_people_choose_there_must_be_something_to_choose_from(task_type):
    with pytest.raises(InputError, match="at least two"):
        make_project(task_type=task_type, choices=())


def test_an_unknown_task_type_is_refused_and_a_known_one_never_changes():
    with pytest.raises(InputError) as refused:
        create_project(user=make_user(), name="x", task_type="guess")
    assert refused.value.where == "task_type"
    project = make_project(task_type="number", choices=())
    with pytest.raises(InputError) as refused:
        update_project(project=project, user=project.created_by, task_type="math")
    assert refused.value.where == "task_type"


@pytest.mark.parametrize(
    ("task_type", "given", "stored"),
    [
        ("multiple_choice", ["dog", "cat"], ["cat", "dog"]),
        ("multiple_choice", [], []),
        ("number", " 3.50 ", "3.5"),
        ("number", 3.5, "3.5"),
        ("math", " \\frac{1}{2} ", "\\frac{1}{2}"),
        ("short_text", " Ada  Lovelace ", "Ada  Lovelace"),
        ("long_text", "one\r\ntwo\r\n", "one\ntwo"),
        ("code", "\n  return 1\n", "  return 1"),
    ],
)
def test_an_answer_is_stored_in_its_canonical_form_and_once(task_type, given, stored):
    project, user, _ = asking(task_type)
    task = queue.claim(project=project, user=user)
    sent = {"work_item_id": task.work_item.pk, "token": task.token, "idempotency_key": "k1"}
    label = queue.submit(user=user, value=given, **sent)
    assert label.value == stored
    assert queue.submit(user=user, value=stored, **sent) == label
    assert Label.objects.count() == 1


@pytest.mark.parametrize(
    ("task_type", "given", "words"),
    [
        ("multiple_choice", ["cat", "emu"], "not one of this project's labels"),
        ("multiple_choice", "", "no answer yet"),
        ("number", "1,234", "without a comma"),
        ("number", "about 3", "cannot be stored as a number"),
        ("number", "", "no answer yet"),
        ("math", "$$", "no formula"),
        ("short_text", "   ", "is no answer"),
        ("short_text", "x" * 1001, "1,000"),
        ("long_text", ["x"], "a list"),
        ("code", None, "no answer yet"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(task_type, given, words):
    project, user, _ = asking(task_type)
    with pytest.raises(InputError) as refused:
        answer(project, user, given)
    assert refused.value.where == "value"
    assert words in refused.value.message
    assert not Label.objects.exists()


def test_a_correction_that_says_the_same_in_another_spelling_is_none():
    project, user, _ = asking("number")
    label = answer(project, user, "3.5")
    same = queue.correct(user=user, label_id=label.pk, value="3.50", idempotency_key="k2")
    assert same == label
    newer = queue.correct(user=user, label_id=label.pk, value="4", idempotency_key="k3")
    assert (newer.value, newer.version) == ("4", 2)


def test_an_answer_that_comes_too_late_is_kept_as_a_draft():
    project, user, _ = asking("multiple_choice", 1)
    task = queue.claim(project=project, user=user)
    queue.release_all(project=project, user=user)
    with pytest.raises(ConflictError):
        queue.submit(
            user=user, work_item_id=task.work_item.pk, token=task.token, value=[], idempotency_key="k"
        )
    assert Draft.objects.get().value == []
    assert queue.claim(project=project, user=user).draft_value == []


def test_a_label_that_was_given_among_others_is_found_and_cannot_be_removed():
    project, user, _ = asking("multiple_choice", 3)
    keys = ["cat", 'a "b"']
    first = answer(project, user, keys, "k1")
    answer(project, user, [], "k2")
    labels = Label.objects.filter(item__project=project)
    assert [list(with_choice(labels, project, key)) for key in (*keys, "dog", "ca")] == [
        [first],
        [first],
        [],
        [],
    ]
    left = [ChoiceSpec(name, key=name) for name in ("dog", 'a "b"')]
    with pytest.raises(ConflictError, match="'cat' has been given"):
        set_choices(project=project, user=project.created_by, choices=left)
    left = [ChoiceSpec(name, key=name) for name in keys]
    assert len(set_choices(project=project, user=project.created_by, choices=left)) == 2


def test_values_in_words():
    names = {"c": "Cat", "d": "Dog"}
    assert label_in_words("c", names) == "Cat"
    assert label_in_words(["c", "d", "gone"], names) == "Cat, Dog, gone"
    assert label_in_words([], names) == "none of them"
    assert label_in_words("3.5", {}) == "3.5"
