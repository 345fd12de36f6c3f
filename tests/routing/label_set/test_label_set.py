"""Labels that are merged or split: what was stored stays, and is read otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.common.value_reader import reader_of
from annotation.errors import ConflictError, InputError
from annotation.labelling.labels_of_record import record_values
from annotation.models import AuditEvent, HeldOutItem, Label, Project, ReplacedChoice
from annotation.permissions import Access, access_to
from annotation.projects.manage import ChoiceSpec, set_choices
from annotation.review.agreement_queries import agreement
from routing.items.table import item_rows
from routing.label_set.replace import (
    preview_replacement,
    replace_label,
    store_new_choices,
    to_choose,
    with_options,
)
from routing.models import Prediction, Run, Source
from routing.runs.pool import pool_of
from routing.sources.backend_for import fingerprint_of
from routing.sources.mends import reader_for
from testbed.delivered import delivered as files_in
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import Answers, make_world, rows_of
from tests.routing.by_people.people import answer, asked, delivered, page_of
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

STARS = Answers(
    task_type="single_choice",
    choices=("1", "2", "3"),
    true=lambda random_: random_.choice("123"),
    right=lambda random_, true: str(true),
    wrong=lambda random_, true: random_.choice("123".replace(str(true), "")),
)


def access_of(project: Project) -> Access:
    access = access_to(project.created_by, project.slug)
    assert access is not None
    return access


@pytest.fixture
def labelled() -> Project:
    """Four items by one person: cat, cat, dog, emu."""
    project = make_project(choices=["cat", "dog", "emu"])
    make_items(project, 4)
    run = asked(project)
    person = add_member(project)
    for value, count in (("cat", 2), ("dog", 1), ("emu", 1)):
        answer(project, person, value, most=count)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    return Project.objects.get(pk=project.pk)


class TestMerging:
    def test_what_was_stored_stays_and_counts_as_the_other_label(self, labelled: Project) -> None:
        replaced = replace_label(access=access_of(labelled), key="cat", into=["dog"])
        project = Project.objects.get(pk=labelled.pk)
        assert (replaced.name, replaced.into, replaced.created_by) == ("cat", ["dog"], project.created_by)
        assert sorted(Label.objects.values_list("value", flat=True)) == ["cat", "cat", "dog", "emu"]
        assert list(project.choices.values_list("key", flat=True)) == ["dog", "emu"]
        ids = list(project.items.values_list("pk", flat=True))
        assert sorted(str(row.value) for row in record_values(project, ids).values()) == ["dog"] * 3 + ["emu"]
        rows = item_rows(project, access_of(project), filters={"label": "dog"}).rows
        assert [row.label_name for row in rows] == ["dog"] * 3
        assert not pool_of(project, "dataset").exists()

    def test_whoever_still_says_the_old_label_is_read_as_the_new_one(self, labelled: Project) -> None:
        replace_label(access=access_of(labelled), key="cat", into=["dog"])
        project = Project.objects.get(pk=labelled.pk)
        assert reader_of(project)("cat") == ("dog", "")

    def test_one_label_after_the_other(self, labelled: Project) -> None:
        set_choices(
            project=labelled,
            user=labelled.created_by,
            choices=[ChoiceSpec(name) for name in ("cat", "dog", "emu", "owl")],
        )
        replace_label(access=access_of(labelled), key="cat", into=["dog"])
        replace_label(access=access_of(labelled), key="dog", into=["emu"])
        project = Project.objects.get(pk=labelled.pk)
        assert reader_of(project)("cat") == ("emu", "")
        ids = list(project.items.values_list("pk", flat=True))
        assert {row.value for row in record_values(project, ids).values()} == {"emu"}

    def test_its_key_comes_never_again(self, labelled: Project) -> None:
        replace_label(access=access_of(labelled), key="cat", into=["dog"])
        project = Project.objects.get(pk=labelled.pk)
        with pytest.raises(ConflictError, match="was merged or split"):
            set_choices(
                project=project,
                user=project.created_by,
                choices=[ChoiceSpec(name) for name in ("dog", "emu", "cat")],
            )

    def test_the_label_that_another_one_became_stays(self) -> None:
        project = make_project(choices=["cat", "dog", "emu"])
        replace_label(access=access_of(project), key="cat", into=["dog"])
        with pytest.raises(ConflictError, match="merged into 'dog'"):
            set_choices(
                project=Project.objects.get(pk=project.pk),
                user=project.created_by,
                choices=[ChoiceSpec(name) for name in ("emu", "owl")],
            )

    def test_people_who_gave_either_agree(self) -> None:
        project = make_project(choices=["cat", "dog", "emu"], overlap=2)
        make_items(project, 2)
        asked(project)
        for value in ("cat", "dog"):
            answer(project, add_member(project), value)
        assert agreement(project).together.equal.value == 0
        run = Run.objects.get()
        run.state = Run.State.COMPLETE
        run.save(update_fields=["state"])
        replace_label(access=access_of(project), key="cat", into=["dog"])
        assert agreement(Project.objects.get(pk=project.pk)).together.equal.value == 1

    @pytest.mark.parametrize(
        ("key", "into", "words"),
        [
            ("owl", ["dog"], "no such label"),
            ("cat", [], "which label"),
            ("cat", ["cat"], "the label itself"),
            ("cat", ["owl"], "no label “owl” to merge into"),
        ],
    )
    def test_what_cannot_be(self, labelled: Project, key: str, into: list[str], words: str) -> None:
        with pytest.raises(InputError, match=words):
            replace_label(access=access_of(labelled), key=key, into=into)
        assert not ReplacedChoice.objects.exists()
        assert labelled.choices.count() == 3

    def test_two_labels_are_the_least(self) -> None:
        project = make_project()
        with pytest.raises(InputError, match="at least two"):
            replace_label(access=access_of(project), key="cat", into=["dog"])
        assert project.choices.count() == 2


class TestUnderARun:
    def test_while_a_run_is_under_way_it_is_refused(self) -> None:
        project = make_project(choices=["cat", "dog", "emu"])
        make_items(project, 2)
        asked(project)
        with pytest.raises(ConflictError, match="Run 1 rests on the labels"):
            preview_replacement(project=project, key="cat", into=["dog"])
        with pytest.raises(ConflictError, match="Run 1 rests on the labels"):
            replace_label(access=access_of(project), key="cat", into=["dog"])

    def test_a_certified_run_verifies_in_its_old_delivery_and_in_a_new_one(self, tmp_path: Path) -> None:
        world = make_world(80)
        run = world.complete(m=30)
        before = files_in(world, run, ("csv", "jsonl"))
        found = preview_replacement(project=world.project, key="cat", into=["dog"]).effects
        rows = rows_of(run)
        people = [row for row in rows if row.label == "cat" and row.source == "person"]
        assert (found.labels, found.runs, found.deliveries) == (len(people), [1], 1)
        assert found.predictions == Prediction.objects.filter(value="cat").count()
        assert (found.invalid, found.closed) == ([], [])
        replace_label(access=access_of(world.project), key="cat", into=["dog"])
        run = Run.objects.get(pk=run.pk)
        assert not run.invalid_reasons
        after = files_in(world, run, ("csv", "jsonl", "huggingface"))
        for name, files in (("before", before), ("after", after)):
            report = found_in(tmp_path / name, {n: d for n, d in files.items() if "dataset" not in n})
            assert (report.faults, name) == ("", name)
        told = [json.loads(line) for line in after["labels.jsonl"].splitlines()]
        assert {row["label_name"] for row in told if row["label"] in ("cat", "dog")} == {"dog"}
        assert "cat" in {row["label"] for row in told}
        assert "of earlier ones, `cat` was merged into `dog`" in after["README.md"].decode()

    def test_a_loss_that_counts_distance_is_marked(self) -> None:
        world = make_world(60, answers=STARS)
        run = world.complete(m=30, loss="numeric", loss_params={"absolute": "0.5"})
        found = preview_replacement(project=world.project, key="1", into=["2"]).effects
        assert found.invalid == [1]
        replace_label(access=access_of(world.project), key="1", into=["2"])
        [reason] = Run.objects.get(pk=run.pk).invalid_reasons
        assert reason["code"] == "label_replaced"
        assert "The label 1 was merged or split" in reason["words"]

    def test_a_source_answers_anew_and_its_answers_are_read_as_the_new_label(self) -> None:
        world = make_world(60)
        world.complete(m=30)
        source = Source.objects.order_by("position")[0]
        before = fingerprint_of(source)
        replace_label(access=access_of(world.project), key="cat", into=["dog"])
        source = Source.objects.get(pk=source.pk)
        assert fingerprint_of(source) != before
        assert reader_for(source)("cat") == ("dog", "")


class TestSplitting:
    def test_people_choose_anew_for_the_items_that_had_it(self, labelled: Project) -> None:
        replace_label(access=access_of(labelled), key="cat", into=["lion", "tiger"])
        project = Project.objects.get(pk=labelled.pk)
        assert list(project.choices.values_list("key", flat=True)) == ["lion", "tiger", "dog", "emu"]
        assert to_choose(access_of(project)).count() == 2
        assert reader_of(project)("cat")[0] is None
        run = asked(project, filters={"stage": "split"})
        assert run.pool_size == 2
        answer(project, add_member(project), "lion")
        project = Project.objects.get(pk=labelled.pk)
        assert not to_choose(access_of(project)).exists()
        for one in (run, project.runs.get(number=1)):
            names = sorted(str(row.label_name) for row in rows_of(Run.objects.get(pk=one.pk)))
            assert names == ["dog", "emu", "lion", "lion"]
        assert {row.label for row in rows_of(Run.objects.get(pk=run.pk))} == {"lion", "dog", "emu"}

    def test_one_by_one_in_a_list(self, labelled: Project) -> None:
        replace_label(access=access_of(labelled), key="cat", into=["lion", "dog"])
        project = Project.objects.get(pk=labelled.pk)
        access = access_of(project)
        first, second = to_choose(access)
        assert [one.options for one in with_options(access, [first, second])] == [["lion", "dog"]] * 2
        with pytest.raises(InputError, match="Choose one of these labels: lion, dog"):
            store_new_choices(access=access, chosen={first.pk: "emu"})
        other = project.items.exclude(pk__in=[first.pk, second.pk])[0]
        with pytest.raises(InputError, match="was not split"):
            store_new_choices(access=access, chosen={other.pk: "lion"})
        assert store_new_choices(access=access, chosen={first.pk: "dog"}) == 1
        assert list(to_choose(access)) == [second]
        label = Label.objects.get(item=first, value="dog")
        assert label.annotator == project.created_by
        with pytest.raises(InputError, match="was not split"):
            store_new_choices(access=access, chosen={first.pk: "lion"})

    def test_what_models_answered_waits_too(self) -> None:
        world = make_world(60)
        run = world.complete(m=30)
        had = {row.external_id: row.source for row in rows_of(run) if row.label == "cat"}
        assert len(set(had.values())) > 1
        replace_label(access=access_of(world.project), key="cat", into=["lion", "tiger"])
        access = access_of(world.project)
        waiting = {item.external_id: item.pk for item in to_choose(access)}
        assert waiting.keys() == had.keys()
        by_model = next(name for name, source in had.items() if source != "person")
        store_new_choices(access=access, chosen={waiting[by_model]: "tiger"})
        row = next(row for row in rows_of(run) if row.external_id == by_model)
        assert (row.label, row.label_name, row.source) == ("tiger", "tiger", "person")
        assert by_model not in {item.external_id for item in to_choose(access)}

    def test_a_certified_run_verifies_also_once_people_have_chosen(self, tmp_path: Path) -> None:
        world = make_world(80)
        run = world.complete(m=30)
        replace_label(access=access_of(world.project), key="cat", into=["lion", "tiger"])
        access = access_of(world.project)
        waiting = [item.pk for item in to_choose(access)]
        store_new_choices(access=access, chosen=dict.fromkeys(waiting[::2], "lion"))
        run = Run.objects.get(pk=run.pk)
        assert not run.invalid_reasons
        files = files_in(world, run, ("csv", "jsonl", "huggingface", "manifest", "label_studio"))
        found = found_in(tmp_path / "split", {name: files[name] for name in files if "/" not in name})
        assert found.faults == ""
        told = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
        names = [row["label_name"] for row in told]
        assert names.count("lion") == len(waiting[::2])
        assert names.count("cat") == len(waiting) - len(waiting[::2])

    def test_of_several_labels_the_others_stay(self) -> None:
        project = make_project(choices=["cat", "dog", "emu"], task_type="multiple_choice")
        make_items(project, 1)
        asked(project)
        answer(project, add_member(project), ["cat", "emu"])  # type: ignore[arg-type]
        replace_label(access=access_of(project), key="cat", into=["lion", "tiger"])
        access = access_of(project)
        [item] = to_choose(access)
        store_new_choices(access=access, chosen={item.pk: "lion"})
        assert record_values(access.project, [item.pk])[item.pk].value == ["emu", "lion"]


class TestPagesAndApi:
    def test_a_merge_by_the_pages_with_its_preview(self, labelled: Project, client_of: Any) -> None:
        client, slug = client_of(labelled.created_by), labelled.slug
        assert "Merge or split a label" in page_of(client, "project_settings", slug)
        assert "Split" in page_of(client, "label_set", slug)
        address = reverse("label_set", args=[slug])
        fields = {"form": "merge", "key": "cat", "into": "dog"}
        looked = client.post(address, fields).content.decode()
        assert "<dd>2</dd>" in looked
        assert not ReplacedChoice.objects.exists()
        client.post(address, {**fields, "now": "1"})
        assert "Merged:" in page_of(client, "label_set", slug)
        event = AuditEvent.objects.get(action="project.label_merged")
        assert event.data["label"] == "cat"
        assert event.data["into"] == ["dog"]
        assert "A label was merged into another one" in page_of(client, "audit", slug)
        item = Label.objects.filter(value="cat")[0].item
        assert "cat (now dog)" in page_of(client, "item", slug, item.pk)
        assert "Choose a valid" not in looked

    def test_a_split_by_the_pages(self, labelled: Project, client_of: Any) -> None:
        client, slug = client_of(labelled.created_by), labelled.slug
        address = reverse("label_set", args=[slug])
        fields = {"form": "split", "key": "cat", "into": "lion\ntiger\n"}
        assert "In its place:" in client.post(address, fields).content.decode()
        client.post(address, {**fields, "now": "1"})
        assert "2 items have a label that was split" in page_of(client, "label_set", slug)
        page = page_of(client, "label_set_choose", slug)
        assert page.count('<option value="lion">') == 2
        first, _second = Label.objects.filter(value="cat").values_list("item", flat=True)
        client.post(reverse("label_set_choose", args=[slug]), {f"item-{first}": "tiger"})
        assert "1 item has a label that was split" in page_of(client, "label_set", slug)

    def test_by_the_api(self, labelled: Project, client_of: Any) -> None:
        client, slug = client_of(labelled.created_by), labelled.slug

        def post(name: str, **body: Any) -> Any:
            return client.post(reverse(name, args=[slug]), body, content_type="application/json")

        outlook = post("api_replaced_choices_outlook", key="cat", into=["lion", "tiger"]).json()
        assert (outlook["labels"], outlook["runs"], outlook["deliveries"]) == (2, [1], 0)
        made = post("api_replaced_choices", key="cat", into=["lion", "tiger"])
        assert (made.status_code, made.json()["into"]) == (201, ["lion", "tiger"])
        address = reverse("api_replaced_choices_to_choose", args=[slug])
        first, second = client.get(address).json()["results"]
        assert (first["stored"], first["options"]) == ("cat", ["lion", "tiger"])
        name = "api_replaced_choices_to_choose"
        assert post(name, labels={first["external_id"]: "lion"}).json() == {"chosen": 1}
        assert post(name, labels={"nothing": "lion"}).status_code == 400
        assert [one["id"] for one in client.get(address).json()["results"]] == [second["id"]]
        [told] = client.get(reverse("api_replaced_choices", args=[slug])).json()["results"]
        assert (told["key"], told["created_by"]) == ("cat", labelled.created_by.username)

    def test_by_the_command(self, labelled: Project, capsys: Any) -> None:
        who = {"user": labelled.created_by.username}
        call_command("replace_label", labelled.slug, "cat", into=["dog"], **who)
        assert "2 labels by people" in capsys.readouterr().out
        assert not ReplacedChoice.objects.exists()
        call_command("replace_label", labelled.slug, "cat", into=["dog"], replace=True, **who)
        assert "cat is merged into dog." in capsys.readouterr().out
        assert ReplacedChoice.objects.get().into == ["dog"]

    def test_a_project_without_choices_has_no_such_page(self, client_of: Any) -> None:
        project = make_project(choices=(), task_type="number")
        assert client_of(project.created_by).get(reverse("label_set", args=[project.slug])).status_code == 404

    def test_a_delivery_says_what_labels_are_now(self, labelled: Project, client_of: Any) -> None:
        replace_label(access=access_of(labelled), key="cat", into=["dog"])
        client = client_of(labelled.created_by)
        made = delivered(client, labelled.runs.get())
        assert made.rows == 4


@pytest.mark.parametrize(
    ("task_type", "given"), [("single_choice", "cat"), ("multiple_choice", ["cat", "dog"])]
)
def test_the_preview_counts_known_answers_that_give_the_label(client_of, task_type, given):
    project = make_project(choices=["cat", "dog", "emu"], task_type=task_type)
    other = "dog" if task_type == "single_choice" else ["dog"]
    for item, purpose, value in zip(
        make_items(project, 4), ("gold", "practice", "gold", "gold"), (given, given, other, None), strict=True
    ):
        HeldOutItem.objects.create(
            project=project,
            item=item,
            purpose=purpose,
            at_random=False,
            answer=value,
            created_by=project.created_by,
        )
    assert preview_replacement(project=project, key="cat", into=["emu"]).effects.known_answers == 2
    assert preview_replacement(project=project, key="emu", into=["cat"]).effects.known_answers == 0
    client = client_of(project.created_by)
    split = client.post(
        reverse("label_set", args=[project.slug]), {"form": "split", "key": "cat", "into": "lion\nlynx"}
    ).content.decode()
    assert "Known answers of practice and gold items that give it</dt><dd>2</dd>" in split
    assert "are not used until somebody gives them" in split
