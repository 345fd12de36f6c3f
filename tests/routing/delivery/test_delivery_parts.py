"""Deliveries of a part: what is new since another one, and what filters find."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.core.files.storage import default_storage

from annotation.common.files import MODEL_OUTPUT
from annotation.errors import InputError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import AuditEvent, Job, Label, Membership
from routing.delivery.deliver import deliver
from routing.delivery.formats import FORMATS
from routing.delivery.parts import newest_base
from routing.items.filters import HiddenError
from routing.labels import all_items
from routing.models import Delivery, Run
from testbed.factories import make_items
from testbed.worlds import NUMBERS, SETS, World, files_of, make_world
from tests.routing.runs.test_script_commands import ended, run as run_command

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
Lines = dict[str, dict[str, Any]]


def made(world: World, run: Run, **part: Any) -> Delivery:
    deliver(run=run, user=world.manager, **{"formats": ["jsonl"], **part})
    return Delivery.objects.get(pk=world.do("deliver_run").result["delivery"])


def lines_of(delivery: Delivery) -> Lines:
    """By external id, in the order of the file."""
    lines = [json.loads(line) for line in files_of(delivery)["labels.jsonl"].splitlines()]
    return {line["external_id"]: line for line in lines}


def told(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return line["label"], line["source"], line["certificate_id"]


def new_in(after: Lines, before: Lines) -> Lines:
    return {
        name: line for name, line in after.items() if name not in before or told(line) != told(before[name])
    }


def correct(world: World, label: Label, key: str) -> None:
    other = next(choice for choice in ("cat", "dog") if choice != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key=key)


def add_items(world: World, count: int) -> None:
    late = make_items(world.project, count)
    data = list(world.project.items.order_by("position").values_list("data", flat=True)[:count])
    for item, row in zip(late, data, strict=True):
        item.data = row
        world.truth[item.external_id] = "cat"
    type(late[0]).objects.bulk_update(late, ["data"])


class TestSince:
    @pytest.mark.database
    def test_it_holds_what_is_new_and_with_the_other_one_it_is_the_whole(self, routed) -> None:
        world, run = routed
        base = made(world, run)
        before = lines_of(base)
        world.label(limit=5)
        correct(world, Label.objects.filter(work_item__batch=run.calibration_batch)[0], "c-0001-abcdef")
        make_items(world.project, ["late"], data={"text": "late"})
        part, whole = made(world, run, since=base), made(world, run)
        after = lines_of(whole)
        expected = new_in(after, before)
        assert 7 == len(expected) == part.rows
        assert lines_of(part) == expected
        assert list(lines_of(part)) == list(expected)
        assert (part.items, part.since, part.is_part, whole.is_part) == (101, base, True, False)
        assert {name: told(line) for name, line in {**before, **lines_of(part)}.items()} == {
            name: told(line) for name, line in after.items()
        }

    def test_a_label_that_is_gone_is_told_with_the_reason(self, routed) -> None:
        world, run = routed
        world.label(limit=1)
        base = made(world, run)
        label = Label.objects.get(work_item__batch=run.routed_batch)
        rows_ = Label.objects.filter(pk=label.pk)
        rows_._raw_delete(rows_.db)
        part = made(world, run, since=base)
        [line] = lines_of(part).values()
        assert line["external_id"] == label.item.external_id
        assert (line["label"], line["source"], part.blanks) == (None, None, 1)
        assert line["reason"]

    def test_one_may_build_on_another_that_was_only_what_was_new(self, routed) -> None:
        world, run = routed
        first = made(world, run)
        world.label(limit=3)
        second = made(world, run, since=first)
        world.label(limit=4)
        third = made(world, run, since=second)
        assert (second.rows, third.rows) == (3, 4)
        together = lines_of(first) | lines_of(second) | lines_of(third)
        assert {name: told(line) for name, line in together.items()} == {
            name: told(line) for name, line in lines_of(made(world, run)).items()
        }

    def test_it_may_build_on_one_that_was_filtered_and_on_another_run(self, routed) -> None:
        world, run = routed
        by_people = made(world, run, filters={"by": "person"})
        rest = made(world, run, since=by_people)
        assert 0 < by_people.rows < 100
        assert by_people.rows + rest.rows == 100
        world.finish()
        before = lines_of(made(world, run))
        base = Delivery.objects.order_by("-pk")[0]
        add_items(world, 60)
        second = world.complete(m=30)
        assert second.number == 2
        part = lines_of(made(world, second, since=base))
        assert part == new_in(lines_of(made(world, second)), before)
        assert {line["certificate_id"] for line in part.values()} >= {second.certificate.sha256}

    def test_where_nothing_is_new_all_formats_hold_nothing_and_the_certificate_verifies(
        self, routed, tmp_path
    ) -> None:
        world, run = routed
        base = made(world, run)
        part = made(world, run, since=base, formats=list(FORMATS))
        assert (part.rows, part.blanks, part.items) == (0, 0, 100)
        files = files_of(part)
        assert files["labels.jsonl"] == b""
        assert json.loads(files["labels.json"]) == json.loads(files["label_studio/tasks.json"]) == []
        assert len(files["labels.csv"].splitlines()) == 1
        for name in ("certificate.json", "draw.jsonl"):
            (tmp_path / name).write_bytes(files[name])
        paths = [str(tmp_path / name) for name in ("certificate.json", "draw.jsonl")]
        command = [sys.executable, "-m", "routing.core.verify", *paths]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr

    def test_the_data_card_says_what_it_is_and_what_is_promised(self, routed) -> None:
        world, run = routed
        base = made(world, run)
        world.label(limit=2)
        words = files_of(made(world, run, since=base))["README.md"].decode()
        assert "A part: 2 of 100 items." in words
        assert "what differs from delivery 1 of run 1" in words
        assert "This delivery is partial" in words
        promise = "What is certified is about all 100 items of the run together, not about this part"
        assert (promise in words) is run.certificate.certified
        assert "A part" not in files_of(base)["README.md"].decode()

    def test_labels_that_are_lists_or_texts_are_compared_as_well(self) -> None:
        for answers in (SETS, NUMBERS):
            world = make_world(60, answers=answers)
            run = world.routed(m=30)
            base = made(world, run)
            waiting = base.blanks
            world.finish()
            part = made(world, run, since=base)
            assert part.rows == waiting
            assert all(line["label"] is not None for line in lines_of(part).values())

    @pytest.mark.database
    def test_it_is_the_same_bytes_each_time_and_however_it_is_read(self, routed, monkeypatch) -> None:
        world, run = routed
        base = made(world, run)
        world.label(limit=9)
        every = [name for name in FORMATS if name != "parquet"]
        first = files_of(made(world, run, since=base, formats=every))
        assert files_of(made(world, run, since=base, formats=every)) == first
        monkeypatch.setattr(all_items, "READ", 7)
        monkeypatch.setattr(all_items, "PAGE", 7)
        assert files_of(made(world, run, since=base, formats=every)) == first
        filtered = files_of(made(world, run, filters={"by": "person"}, formats=every))
        monkeypatch.undo()
        assert files_of(made(world, run, filters={"by": "person"}, formats=every)) == filtered

    def test_a_record_that_is_damaged_or_lost_fails_in_words(self, routed) -> None:
        world, run = routed
        base = made(world, run)
        name = base.given.storage_name
        with default_storage.open(name) as file:
            content = file.read()

        def fails() -> str:
            job = deliver(run=run, user=world.manager, since=base)
            assert not jobs.run(job.pk)
            job.refresh_from_db()
            assert job.state == Job.State.FAILED
            return job.error

        for bad in (content[:-24], content[:-1], content[::-1], b""):
            default_storage.delete(name)
            with default_storage.open(name, "wb") as file:
                file.write(bad)
            assert "damaged" in fails()
        default_storage.delete(name)
        assert "no longer in the storage" in fails()
        assert Delivery.objects.count() == 1

    def test_nobody_is_shown_what_is_kept_for_it(self, routed) -> None:
        world, run = routed
        assert made(world, run).given.media_type == MODEL_OUTPUT

    def test_deliveries_that_cannot_be_built_on_are_refused(self, routed) -> None:
        world, run = routed
        base = made(world, run)
        other = make_world(60)
        with pytest.raises(InputError, match="no such delivery"):
            deliver(run=run, user=world.manager, since=made(other, other.routed(m=30)))
        with pytest.raises(InputError, match="not both"):
            deliver(run=run, user=world.manager, since=base, filters={"by": "person"})
        Delivery.objects.filter(pk=base.pk).update(given=None)
        base.refresh_from_db()
        with pytest.raises(InputError, match="earlier version"):
            deliver(run=run, user=world.manager, since=base)
        assert newest_base(run) is None

    def test_the_newest_to_build_on_was_not_filtered(self, routed) -> None:
        world, run = routed
        assert newest_base(run) is None
        base = made(world, run)
        made(world, run, filters={"by": "person"})
        assert newest_base(run) == base
        part = made(world, run, since=base)
        assert newest_base(run) == part

    def test_the_audit_trail_says_what_it_was(self, routed) -> None:
        world, run = routed
        base = made(world, run)
        made(world, run, since=base)
        made(world, run, filters={"by": "person"})
        events = AuditEvent.objects.filter(action="run.delivered").order_by("pk")
        whole, since, filtered = (event.data for event in events)
        assert (whole["rows"], "since" in whole, "filters" in whole) == (100, False, False)
        assert (since["rows"], since["items"], since["since"]) == (0, 100, base.pk)
        assert filtered["filters"] == {"by": "person"}


class TestFilters:
    @pytest.mark.database
    @pytest.mark.parametrize(
        ("filters", "matches"),
        [
            ({"by": "person"}, lambda line: line["source"] == "person"),
            ({"by": "1"}, lambda line: line["source"] == "Model 1"),
            ({"by": "nobody"}, lambda line: line["label"] is None),
            ({"label": "cat"}, lambda line: line["label"] == "cat"),
            ({"u_from": "0.3", "u_to": "0.6"}, lambda line: 0.3 <= line["uncertainty"] <= 0.6),
            ({"label": "dog", "by": "person"}, lambda line: told(line)[:2] == ("dog", "person")),
            ({"q": "text 1"}, lambda line: line["text"].startswith("text 1")),
            ({"q": "nowhere"}, lambda line: False),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
    )
    def test_they_hold_what_the_whole_has_of_it(
        self, routed, filters: dict[str, str], matches: Callable[[dict[str, Any]], bool]
    ) -> None:
        world, run = routed
        world.label(limit=4)
        whole = lines_of(made(world, run))
        part = made(world, run, filters=filters)
        expected = {name: line for name, line in whole.items() if matches(line)}
        assert lines_of(part) == expected
        assert (part.rows, part.items, part.filters) == (len(expected), 100, filters)
        words = files_of(part)["README.md"].decode()
        assert f"A part: {len(expected)} of 100 items." in words
        for name, value in filters.items():
            assert f"- `{name} = {value}`" in words

    def test_what_is_no_filter_or_value_is_refused_before_the_job(self, routed) -> None:
        world, run = routed
        for filters in ({"colour": "red"}, {"label": "unicorn"}, {"by": "7"}, {"u_from": "much"}):
            with pytest.raises(InputError) as caught:
                deliver(run=run, user=world.manager, filters=filters)
            assert caught.value.where == next(iter(filters))
        assert not Job.objects.filter(kind="deliver_run").exists()

    def test_nothing_is_filtered_while_another_run_is_open_but_what_is_new_is_told(self) -> None:
        world = make_world(60)
        first = world.complete(m=30)
        base = made(world, first)
        waiting = deliver(run=first, user=world.manager, filters={"label": "cat"})
        add_items(world, 60)
        world.start(m=30, target="population")
        world.do("prepare_run")
        with pytest.raises(HiddenError, match="nothing is filtered"):
            deliver(run=first, user=world.manager, filters={"label": "cat"})
        assert not jobs.run(waiting.pk)
        waiting.refresh_from_db()
        assert "nothing is filtered" in waiting.error
        assert world.label(limit=6) == 6
        part = made(world, first, since=base)
        assert (part.rows, part.blanks) == (60, 60)

    def test_whoever_has_left_gets_nothing(self, routed) -> None:
        world, run = routed
        job = deliver(run=run, user=world.manager, filters={"by": "person"})
        Membership.objects.filter(user=world.manager).delete()
        assert not jobs.run(job.pk)
        job.refresh_from_db()
        assert "no longer in the project" in job.error


def test_a_part_of_the_items_is_delivered_where_that_is_wanted() -> None:
    world = make_world(100)
    slug, user = world.project.slug, world.manager.username
    world.routed(m=40)

    def said_by(*words: object) -> str:
        return run_command("deliver", slug, 1, "--partial", "--formats", "jsonl", *words, "--here", user=user)

    assert "Delivery 1 of run 1: 100 rows, " in said_by("--since", "newest")
    world.label(limit=2)
    assert "2 rows of 100 items" in said_by("--since", "newest")
    said_by("--filter", "by=person", "--filter", "u_from=0.25")
    assert Delivery.objects.order_by("pk").last().filters == {"by": "person", "u_from": "0.25"}
    assert "0 rows of 100 items" in said_by("--since", "newest")
    assert "2 rows of 100 items" in said_by("--since", Delivery.objects.order_by("pk").first().pk)
    for words, reason in (
        (("--since", "yesterday"), "neither the id"),
        (("--since", "999999"), "no such delivery"),
        (("--filter", "person"), "NAME=VALUE"),
        (("--filter", "label=cat", "--filter", "label=dog"), "twice"),
        (("--filter", "colour=red"), "no such filter"),
    ):
        code, why = ended("deliver", slug, 1, "--partial", *words, user=user)
        assert (code, reason in why) == (1, True), why
