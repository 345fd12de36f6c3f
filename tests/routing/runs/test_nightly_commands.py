"""Commands of a script that is started every night: what it does in the next one where a step failed."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.jobs import kinds
from annotation.management import scripts
from annotation.models import Job
from routing.models import Delivery, Run
from routing.runs.cancel import cancel_run
from testbed.factories import make_items
from tests.routing.runs.test_script_commands import PLAN, ended, run, slug_and_user, world
from tests.routing.sources.sending import uploaded

__all__ = ["world"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_a_folder_that_cannot_be_is_told_before_a_delivery_is_made(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    world.complete(m=40)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        code, reason = ended("deliver", slug, 1, "--to", folder, "--here", user=user)
        assert (code, f"Nothing can be written into the folder {folder}: " in reason) == (1, True)
    assert not Job.objects.filter(kind="deliver_run").exists()
    told = json.loads(run("deliver", slug, 1, "--to", tmp_path / "new", "--here", "--json", user=user))
    assert (told["state"], told["job"]["state"], told["job"]["kind"]) == ("complete", "done", "deliver_run")


def test_a_run_is_started_for_new_items_alone(world) -> None:
    slug, user = slug_and_user(world)

    def planned() -> dict[str, object]:
        words = ("plan", slug, *PLAN, "--start", "--if-new-items", "--unless-under-way", "--anyway")
        return json.loads(run(*words, "--here", "--json", user=user))

    assert planned()["state"] == "calibrating"
    world.give_up_all()  # so that items are left without a label, which are not new
    for command in ("analyse", "route"):
        run(command, slug, "newest", "--here", user=user)
    world.give_up_all()
    told = planned()
    assert (told["run"], told["state"], told["started"]) == (1, "complete", False)
    assert Run.objects.get().state == Run.State.COMPLETE
    data = world.project.items.first().data
    world.project.items.filter(pk__in=[item.pk for item in make_items(world.project, 60)]).update(data=data)
    assert (planned()["run"], Run.objects.last().pool_size) == (2, 160)
    # Nobody cancels a run so that it begins again at night.
    cancel_run(run=Run.objects.get(number=2), user=world.manager)
    assert planned()["run"] == 2
    assert Run.objects.count() == 2


def test_a_run_is_delivered_before_the_next_one_begins(world) -> None:
    slug, user = slug_and_user(world)
    words = ("plan", slug, *PLAN, "--start", "--if-new-items", "--unless-undelivered", "--anyway", "--here")
    run(*words, user=user)
    for command in ("analyse", "route", "deliver"):
        world.finish()
        run(command, slug, "newest", *(["--partial"] if command == "deliver" else []), "--here", user=user)
    data = world.project.items.first().data
    world.project.items.filter(pk__in=[item.pk for item in make_items(world.project, 60)]).update(data=data)
    Delivery.objects.update(created_at=Run.objects.get().created_at)  # a partial one, as it was made before
    assert run(*words, user=user) == "Run 1 is complete and not delivered yet.\n"
    run("deliver", slug, "newest", "--here", user=user)
    run(*words, user=user)
    assert Run.objects.filter(number=2).exists()


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("prepare_run", Run.State.PREPARING),
        ("analyse_run", Run.State.ANALYSING),
        ("route_run", Run.State.ROUTING),
    ],
)
def test_a_job_that_failed_in_an_earlier_night_goes_on(world, monkeypatch, kind, state) -> None:
    slug, user = slug_and_user(world)
    night = (
        ("plan", slug, *PLAN, "--start", "--if-new-items", "--unless-under-way", "--here"),
        ("analyse", slug, "newest", "--here"),
        ("route", slug, "newest", "--here"),
    )
    works = kinds.KINDS[kind]

    def fail(context):
        raise scripts.HypacError("The moon is in the way.")

    def go() -> None:
        for words in night:
            try:
                run(*words, user=user)
            except CommandError as error:
                if error.returncode == scripts.FAILED:
                    raise
                world.finish()
                run(*words, user=user)

    monkeypatch.setitem(kinds.KINDS, kind, kinds.Kind(kind, "x", fail, lambda _job: "default"))
    with pytest.raises(CommandError, match="The moon is in the way"):
        go()
    assert Run.objects.get().state == state
    monkeypatch.setitem(kinds.KINDS, kind, works)
    go()
    assert Run.objects.get().state == Run.State.LABELLING
    assert Job.objects.get(kind=kind).state == Job.State.DONE


def test_rows_that_cannot_be_used_are_told_and_end_a_strict_command(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    uploaded(world.project)
    file = tmp_path / "answers.jsonl"
    lines = [
        {"external_id": "t0", "label": "cat"},
        *({"external_id": f"x{n}", "label": "cat"} for n in range(30)),
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("send_predictions", slug, "Outside", file, "--here")
    err = StringIO()
    call_command(*map(str, words), "--user", user, stdout=StringIO(), stderr=err)
    told = err.getvalue().splitlines()
    assert told[0] == "line 2: The project has no item “x0”."
    assert len(told) == scripts.MOST_PROBLEMS + 1
    assert told[-1].startswith("... and 10 more: /projects/")
    code, reason = ended(*words, "--strict", user=user)
    assert (code, reason.startswith("answers.jsonl: 30 lines or labels could not be used.")) == (1, True)
    assert "1 were there already" in run(*words, user=user)
    job = json.loads(run(*words, "--json", user=user))
    assert job["problem_count"] == 30
    first = job["problems"][0]
    assert (first["line"], first["message"]) == (2, "The project has no item “x0”.")
    file.write_text(json.dumps(lines[0]))
    run(*words, "--strict", user=user)
