"""Projects and their labels."""

from decimal import Decimal

import pytest

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import AuditEvent, Choice, Membership, Project
from annotation.projects.choices import PALETTE, ChoiceSpec, complete
from annotation.projects.manage import create_project, set_choices, update_project
from annotation.projects.queries import projects_of
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = pytest.mark.django_db


def specs(*names: str) -> list[ChoiceSpec]:
    return [ChoiceSpec(name) for name in names]


class TestCreate:
    def test_the_creator_owns_it(self) -> None:
        user = make_user()
        project = create_project(user=user, name=" Cats & dogs ", choices=specs("cat", "dog"))
        assert (project.name, project.slug) == ("Cats & dogs", "cats-dogs")
        assert Membership.objects.get().role == Membership.Role.OWNER
        assert AuditEvent.objects.get(action="project.created").project == project
        (mine,) = projects_of(user)
        assert (mine, mine.role) == (project, "owner")

    def test_slugs_are_unique_and_never_a_word_of_the_addresses(self) -> None:
        user = make_user()
        names = ["Digits", "digits!", "new", "???", "日本", "x" * 200]
        slugs = [create_project(user=user, name=name, choices=specs("a", "b")).slug for name in names]
        assert slugs == ["digits", "digits-2", "new-1", "project", "project-2", "x" * 70]

    @pytest.mark.parametrize(
        ("fields", "where"),
        [
            ({"name": " "}, "name"),
            ({"name": "x" * 201}, "name"),
            ({"human_cost": Decimal(-1)}, "human_cost"),
            ({"lease_seconds": 5}, "lease_seconds"),
            ({"currency": ""}, "currency"),
            ({"choices": specs("only")}, "choices"),
            ({"choices": specs("cat", "Cat")}, "choices"),
            ({"choices": specs("cat", "")}, "label 2"),
            ({"choices": specs("cat", "x\ny")}, "label 2"),
            ({"choices": [ChoiceSpec("a", hotkey="u"), ChoiceSpec("b")]}, "label 1"),
            ({"choices": [ChoiceSpec("a", hotkey="x"), ChoiceSpec("b", hotkey="X")]}, "choices"),
            ({"choices": [ChoiceSpec("a", key="k"), ChoiceSpec("b", key="k")]}, "choices"),
            ({"choices": [ChoiceSpec("a", color="red"), ChoiceSpec("b")]}, "label 1"),
        ],
    )
    def test_bad_input_names_the_field_and_makes_nothing(self, fields, where) -> None:
        user = make_user()
        with pytest.raises(InputError) as raised:
            create_project(**{"user": user, "name": "x", "choices": specs("a", "b"), **fields})
        assert raised.value.where == where
        assert not Project.objects.exists()


class TestChoices:
    def test_keys_are_the_names_and_hotkeys_count_up_past_those_the_page_uses(self) -> None:
        done = complete(specs(*(f"label {number}" for number in range(40))))
        assert done[0] == ChoiceSpec("label 0", "label 0", "1", PALETTE[0])
        assert "".join(spec.hotkey for spec in done) == "123456789abcdefghijklmnopqrtvwxyz"

    def test_names_of_one_character_are_their_own_hotkeys(self) -> None:
        assert [spec.hotkey for spec in complete(specs(*"0123456789"))] == list("0123456789")
        assert [spec.hotkey for spec in complete(specs("s", "t"))] == ["1", "2"]

    def test_hotkeys_that_were_chosen_stay(self) -> None:
        done = complete([ChoiceSpec("a b"), ChoiceSpec("c d", hotkey="1")])
        assert [spec.hotkey for spec in done] == ["2", "1"]

    @pytest.mark.parametrize("color", PALETTE)
    def test_default_colours_have_enough_contrast_with_white(self, color) -> None:
        def linear(part: str) -> float:
            value = int(part, 16) / 255
            return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

        red, green, blue = (linear(color[place : place + 2]) for place in (1, 3, 5))
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert 1.05 / (luminance + 0.05) >= 4.5

    def test_rename_reorder_add_and_remove(self) -> None:
        project = make_project(choices=("cat", "dog", "cow"))
        changed = [
            ChoiceSpec("Bird"),
            ChoiceSpec("Hound", key="dog", hotkey="1"),
            ChoiceSpec("cat", key="cat", hotkey="2"),
        ]
        choices = set_choices(project=project, user=project.created_by, choices=changed)
        assert [(choice.key, choice.name, choice.hotkey) for choice in choices] == [
            ("Bird", "Bird", "3"),
            ("dog", "Hound", "1"),
            ("cat", "cat", "2"),
        ]
        assert AuditEvent.objects.get(action="project.choices_changed").data == {
            "added": ["Bird"],
            "removed": ["cow"],
            "renamed": {"dog": ["dog", "Hound"]},
        }

    def test_a_label_that_was_given_cannot_be_removed(self) -> None:
        project = make_project(choices=("cat", "dog", "cow"))
        (item,) = make_items(project, 1)
        queue.create_batch(project=project, item_ids=[item.pk], blind=False, priority=1, entropy=1)
        user = project.created_by
        task = queue.claim(project=project, user=user)
        queue.submit(
            user=user, work_item_id=task.work_item.pk, token=task.token, value="cow", idempotency_key="k"
        )
        with pytest.raises(ConflictError, match="'cow' has been given"):
            set_choices(project=project, user=user, choices=specs("cat", "dog"))
        assert project.choices.count() == 3
        set_choices(project=project, user=user, choices=specs("cat", "cow"))

    def test_while_somebody_builds_on_them_only_looks_change(self, bare_port) -> None:
        bare_port.schema_objection = lambda project: "A run is open."
        project = make_project()
        user = project.created_by
        for changed in (
            specs("cat", "dog", "cow"),
            specs("cat", "cow"),
            [ChoiceSpec("Katze", key="cat"), ChoiceSpec("dog")],
        ):
            with pytest.raises(ConflictError, match="A run is open"):
                set_choices(project=project, user=user, choices=changed)
        looks = [ChoiceSpec("dog", hotkey="d", color="#123456"), ChoiceSpec("cat", hotkey="c")]
        set_choices(project=project, user=user, choices=looks)
        assert list(Choice.objects.values_list("key", "hotkey")) == [("dog", "d"), ("cat", "c")]


class TestUpdate:
    def test_changes_are_kept_and_written_down(self) -> None:
        project = make_project(name="a")
        update_project(project=project, user=project.created_by, name="b", human_cost=Decimal("0.25"))
        project.refresh_from_db()
        assert (project.name, project.slug, project.human_cost) == ("b", "a", Decimal("0.25"))
        assert AuditEvent.objects.get(action="project.changed").data["name"] == ["a", "b"]

    def test_no_change_leaves_no_trace(self) -> None:
        project = make_project(name="a")
        update_project(project=project, user=project.created_by, name="a")
        assert not AuditEvent.objects.filter(action="project.changed").exists()

    @pytest.mark.parametrize(
        ("field", "value"),
        [("name", ""), ("human_cost", Decimal(-1)), ("lease_seconds", 0), ("slug", "x"), ("task_type", "x")],
    )
    def test_bad_input_changes_nothing(self, field, value) -> None:
        project = make_project()
        before = getattr(project, field)
        with pytest.raises(InputError) as raised:
            update_project(project=project, user=project.created_by, **{field: value})
        assert raised.value.where == field
        assert getattr(project, field) == before

    def test_archived_projects_are_not_listed(self) -> None:
        project = make_project()
        viewer = add_member(project, "viewer")
        assert projects_of(viewer).count() == 1
        Project.objects.update(archived_at="2026-01-01T00:00Z")
        assert projects_of(viewer).count() == 0
