"""Commands for scripts: on whose behalf, what they print, and how they end."""

import hashlib
import json
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand

from annotation.jobs import kinds
from annotation.management import scripts
from annotation.models import AuditEvent, Job, Label, Project
from routing.delivery.folder import write_delivery
from routing.management.commands.plan import Command
from routing.models import Delivery, Run
from routing.ports import CORRECTED
from routing.runs.certify import mark_invalid
from routing.sources.manage import save_source
from testbed.factories import add_member, make_project, make_user
from testbed.worlds import World, make_world
from tests.annotation.imports.test_import_excel import workbook

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = ("--epsilon", "0.1", "--alpha", "0.1", "--m", "40", "--p", "0.9")


def run(*words: object, user: str) -> str:
    out = StringIO()
    call_command(*map(str, words), "--user", user, stdout=out, stderr=StringIO())
    return out.getvalue()


def ended(*words: object, user: str) -> tuple[int, str]:
    """The exit code and the reason of a command that does not do what it was asked for."""
    with pytest.raises(CommandError) as caught:
        run(*words, user=user)
    return caught.value.returncode, str(caught.value)


@pytest.fixture
def world() -> World:
    return make_world(100)


def slug_and_user(world: World) -> tuple[str, str]:
    return world.project.slug, world.manager.username


def test_from_a_file_to_certified_files_without_a_browser(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    started = json.loads(run("plan", slug, *PLAN, "--start", "--here", "--json", user=user))
    assert started["state"] == "calibrating"
    code, reason = ended("analyse", slug, "newest", user=user)
    assert (code, "waits for people" in reason) == (2, True)
    assert ended("route", slug, 1, user=user)[0] == 2
    assert ended("deliver", slug, 1, "--to", tmp_path, user=user)[0] == 2
    world.finish()
    analysed = json.loads(run("analyse", slug, "newest", "--here", "--json", user=user))
    certificate = Run.objects.get().certificate
    assert (analysed["state"], analysed["certificate"]) == ("analysed", certificate.sha256)
    routed = json.loads(run("route", slug, 1, "--here", "--json", user=user))
    assert routed["left"] > 0
    code, reason = ended("deliver", slug, 1, "--to", tmp_path, "--here", user=user)
    assert (code, "waits for people" in reason) == (2, True)
    world.finish()
    words = ("deliver", slug, 1, "--formats", "jsonl,csv", "--to", tmp_path, "--here", "--json")
    delivered = json.loads(run(*words, user=user))
    of_certificate = {"certificate.json", "draw.jsonl", "committed.jsonl", "answered.jsonl"}
    names = {"labels.csv", "labels.jsonl", "README.md", "manifest.json", *of_certificate}
    assert {Path(path).name for path in delivered["files"]} == names
    assert {path.name for path in tmp_path.iterdir()} == {*names, ".hypac.json"}
    content = (tmp_path / "certificate.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == certificate.sha256
    assert len((tmp_path / "labels.jsonl").read_text().splitlines()) == 100
    actors = AuditEvent.objects.filter(action__startswith="run.").values_list("actor__username", flat=True)
    assert set(actors) == {user}


def test_scripts_are_told_that_a_part_or_a_broken_run_is_not_certified() -> None:
    world = make_world(400, error=(lambda u: 0.6 * u * u, lambda u: 0.3 * u * u))
    slug, user = world.project.slug, world.manager.username
    found = world.complete(m=200, epsilon="0.1", alpha="0.1")
    words = ("deliver", slug, 1, "--formats", "jsonl", "--here", "--json")
    assert json.loads(run(*words, user=user))["certified"] is True
    assert json.loads(run(*words, "--filter", "by=person", user=user))["certified"] is False
    assert run("analyse", slug, 1, user=user).strip().endswith(": certified.")
    mark_invalid(run=found, why=CORRECTED, params={"item": "7"}, actor=None)
    assert json.loads(run(*words, user=user))["certified"] is False
    assert "its certificate is no longer valid" in run("analyse", slug, 1, user=user)


def test_what_is_done_already_is_done(world) -> None:
    slug, user = slug_and_user(world)
    world.routed(m=40)
    assert "is people label the rest: certified" in run("analyse", slug, 1, user=user).lower()
    assert "answers by people are missing" in run("route", slug, 1, user=user)
    assert Job.objects.filter(kind__in=("analyse_run", "route_run")).count() == 2


def test_a_partial_delivery_has_to_be_asked_for(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    world.routed(m=40)
    told = run("deliver", slug, 1, "--partial", "--to", tmp_path / "new" / "folder", "--here", user=user)
    assert "without a label" in told
    assert (tmp_path / "new" / "folder" / "labels.csv").exists()


def test_a_file_that_was_damaged_in_the_storage_is_not_written(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    world.complete(m=40)
    run("deliver", slug, 1, "--here", user=user)
    stored = Delivery.objects.get().files.get(name="certificate.json").file
    name = default_storage.path(stored.storage_name)
    Path(name).write_bytes(b"x" * stored.size)
    (tmp_path / "certificate.json").write_text("before")
    with pytest.raises(scripts.HypacError, match="damaged"):
        write_delivery(delivery=Delivery.objects.get(), folder=tmp_path)
    assert (tmp_path / "certificate.json").read_text() == "before"
    assert not list(tmp_path.glob(".*"))


def test_a_plan_that_is_only_looked_at_starts_nothing(world) -> None:
    slug, user = slug_and_user(world)
    told = json.loads(run("plan", slug, *PLAN, "--json", user=user))
    assert told["certifiable"] is True
    assert told["sentence"] in run("plan", slug, *PLAN, user=user)
    assert not Run.objects.exists()


def test_a_run_that_is_not_finished_is_left_alone_where_that_is_wanted(world) -> None:
    slug, user = slug_and_user(world)
    world.start(m=40)
    words = ("plan", slug, *PLAN, "--start", "--unless-under-way", "--json")
    told = json.loads(run(*words, user=user))
    assert told == {"run": 1, "state": "preparing", "pool_size": 100, "started": False}
    code, reason = ended("plan", slug, *PLAN, "--start", user=user)
    assert (code, "under way" in reason) == (1, True)
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--epsilon", "2"), "epsilon"),
        (("--epsilon", "little"), "no number"),
        (("--loss-params", "{"), "no JSON"),
        (("--loss-params", "[]"), "no JSON object"),
        (("--bound", "none"), "bound"),
        (("--m", "10", "--start"), "anyway"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_its_reason(world, words, reason) -> None:
    slug, user = slug_and_user(world)
    code, told = ended("plan", slug, *PLAN, *words, user=user)
    assert (code, reason in told) == (1, True), told
    assert not Run.objects.exists()


def test_the_role_of_the_person_counts(world) -> None:
    slug = world.project.slug
    for role in ("viewer", "reviewer", "annotator"):
        user = add_member(world.project, role)
        code, reason = ended("plan", slug, *PLAN, "--start", user=user.username)
        assert (code, "may not" in reason) == (1, True)
    stranger = make_user("stranger")
    assert "no member" in ended("plan", slug, *PLAN, user=stranger.username)[1]
    assert "no active account" in ended("plan", slug, *PLAN, user="nobody")[1]
    assert "--user" in ended("plan", slug, *PLAN, user="")[1]
    assert "no run 7" in ended("analyse", slug, 7, user=world.manager.username)[1]


def test_a_wait_that_is_too_short_ends_with_2_and_says_that_no_worker_runs(world) -> None:
    slug, user = slug_and_user(world)
    code, reason = ended("plan", slug, *PLAN, "--start", "--wait", "0.1", user=user)
    assert (code, "No worker has taken" in reason) == (2, True)
    assert Run.objects.get().state == Run.State.PREPARING


def test_a_job_that_fails_ends_with_1_and_its_reason(world, monkeypatch) -> None:
    slug, user = slug_and_user(world)
    world.calibrated(m=40)

    def fail(context):
        raise scripts.HypacError("The moon is in the way.")

    monkeypatch.setitem(
        kinds.KINDS, "analyse_run", kinds.Kind("analyse_run", "x", fail, lambda _job: "default")
    )
    code, reason = ended("analyse", slug, 1, "--here", user=user)
    assert (code, "The moon is in the way." in reason) == (1, True)


def test_projects_are_made_and_filled_from_files(tmp_path) -> None:
    user = make_user("night").username
    words = ("project", "create", "Reviews", "--choice", "good", "--choice", "bad", "--human-cost", "0.5")
    slug = run(*words, user=user).strip()
    project = Project.objects.get(slug=slug)
    assert [choice.name for choice in project.choices.all()] == ["good", "bad"]
    listed = json.loads(run("project", "list", "--json", user=user))
    assert listed == {"projects": [{"slug": slug, "name": "Reviews", "role": "owner"}]}
    file = tmp_path / "reviews.csv"
    file.write_text("key,text\na,I like it\nb,I do not\n")
    columns = ("--id-column", "key", "--text-column", "text")
    told = json.loads(run("import_items", slug, file, *columns, "--here", "--json", user=user))
    assert (told["state"], told["result"]["added"]) == ("done", 2)
    assert "2 were there already" in run("import_items", slug, file, *columns, "--here", user=user)
    assert set(project.items.values_list("external_id", flat=True)) == {"a", "b"}
    code, reason = ended("import_items", slug, file, "--text-column", "body", user=user)
    assert (code, "no column" in reason) == (1, True)
    again = tmp_path / "again.csv"
    again.write_text("text\nI like it\nI do not\n")
    code, reason = ended("import_items", slug, again, "--text-column", "text", user=user)
    assert (code, "in the project already" in reason) == (1, True)
    columns = ("--text-column", "text", "--add-duplicates", "--here")
    assert json.loads(run("import_items", slug, again, *columns, "--json", user=user))["result"]["added"] == 2
    code, reason = ended("import_items", slug, again, "--text-column", "text", "--keep-labels", user=user)
    assert (code, "does not say which" in reason) == (1, True)
    gone = tmp_path / "gone.csv"
    assert ended("import_items", slug, gone, user=user) == (1, f"There is no file '{gone}'.")
    assert ended("import_items", slug, tmp_path, user=user) == (1, f"'{tmp_path}' is a folder, not a file.")
    assert ended("project", "create", "More", "--human-cost", "little", user=user) == (
        1,
        "--human-cost: 'little' is no number.",
    )


def test_a_sheet_of_a_workbook_is_named_and_a_wrong_one_told_which_there_are(tmp_path) -> None:
    user = make_user("night").username
    slug = run("project", "create", "Reviews", "--choice", "good", "--choice", "bad", user=user).strip()
    file = tmp_path / "reviews.xlsx"
    file.write_bytes(workbook([["key"], ["a"]], [["id", "text"], [7, "second"]]))
    columns = ("--id-column", "id", "--text-column", "text", "--here")
    code, reason = ended("import_items", slug, file, *columns, user=user)
    assert (code, "“excel:Sheet 2”" in reason) == (1, True)
    code, reason = ended("import_items", slug, file, *columns, "--format", "excel:Two", user=user)
    assert (code, "there are: Sheet 1, Sheet 2" in reason) == (1, True)
    run("import_items", slug, file, *columns, "--format", "excel:Sheet 2", user=user)
    assert Project.objects.get(slug=slug).items.get().external_id == "7"


def test_labels_that_come_with_a_file_are_kept_where_a_script_says_so(tmp_path) -> None:
    user = make_user("night").username
    words = ("project", "create", "Reviews", "--choice", "good", "--choice", "bad", "--human-cost", "0.5")
    slug = run(*words, user=user).strip()
    project = Project.objects.get(slug=slug)
    file = tmp_path / "reviews.jsonl"
    first, second = (
        json.dumps({"id": n, "text": f"text {n}", "label": ["good"], "Comments": []}) + "\n" for n in (1, 2)
    )
    columns = ("--id-column", "id", "--text-column", "text", "--here")
    file.write_text(first)
    run("import_items", slug, file, *columns, user=user)
    file.write_text(first + second)
    run("import_items", slug, file, *columns, "--keep-labels", user=user)
    labels = Label.objects.filter(item__project=project).values_list("item__external_id", flat=True)
    assert list(labels) == ["2"]


def test_wrong_usage_on_the_command_line_does_not_look_like_not_yet(capsys) -> None:
    command: BaseCommand = Command()
    command._called_from_command_line = True
    with pytest.raises(SystemExit) as caught:
        command.create_parser("manage.py", "plan").parse_args(["x", "--epsilon", "0.1"])
    assert caught.value.code == 1
    assert "--alpha" in capsys.readouterr().err


def test_nothing_of_another_persons_projects_is_listed(world) -> None:
    make_project()
    told = json.loads(run("project", "list", "--json", user=world.manager.username))
    assert [row["slug"] for row in told["projects"]] == [world.project.slug]


def test_predictions_are_sent_in_from_a_file(world, tmp_path) -> None:
    slug, user = slug_and_user(world)
    save_source(
        project=world.project,
        user=world.manager,
        name="Outside",
        backend="uploaded",
        params={"model": "house-7b"},
        cost_per_label=Decimal(0),
    )
    file = tmp_path / "answers.jsonl"
    file.write_text('{"external_id": "t0", "label": "cat"}\n{"external_id": "x", "label": "cat"}\n')
    told = json.loads(run("send_predictions", slug, "Outside", file, "--here", "--json", user=user))
    assert told["result"] == {"added": 1, "already_there": 0, "problems": 1, "compared": False}
    assert told["problems"][0]["where"] == "line 2"
    code, reason = ended("send_predictions", slug, "Model 1", file, user=user)
    assert (code, "only a source of uploaded" in reason) == (1, True)
    assert "no source" in ended("send_predictions", slug, "Model 9", file, user=user)[1]
    gone = tmp_path / "gone.jsonl"
    assert ended("send_predictions", slug, "Outside", gone, user=user) == (1, f"There is no file '{gone}'.")


def test_the_models_are_measured_for_a_price_that_is_said_before() -> None:
    world = make_world(400, human_cost="40")
    slug, user = slug_and_user(world)
    told = json.loads(run("measure", slug, "--json", user=user))
    assert (told["pilot_size"], told["price"], told["sources"]) == (80, "240.000000", ["Model 1", "Model 2"])
    assert not Job.objects.exists()
    assert "more than the budget" in ended("measure", slug, "--start", "--budget", 7, user=user)[1]
    done = json.loads(run("measure", slug, "--start", "--here", "--json", user=user))
    assert done["measured"] is True
    run("measure", slug, "--discard", user=user)
    assert "could be discarded" in ended("measure", slug, "--discard", user=user)[1]
