"""A file whose answers cannot all be used: what is said of it everywhere, and what has to be confirmed."""

import csv
import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.common.value_reader import ValueReason, reader_of
from annotation.jobs import jobs
from annotation.models import AuditEvent, Job, Project, WorkItem
from routing.core.scores import make_score
from routing.models import Run, Source
from routing.runs.plan import outlook_of_plan
from routing.runs.start import start_run
from routing.runs.usable_answers import accept_unusable
from routing.sources import judged_answers
from routing.sources.manage import save_source
from routing.sources.usability import kind_of_reason, known_labels, usability_of, usability_of_sources
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.test_script_commands import ended, run

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "0.1", "alpha": "0.1", "target": "dataset", "m": "150", "p": "0.9"}
TYPED = {**PLAN, "epsilon": "10", "alpha": "10"}  # a page takes percent
WORDS = [word for name in ("epsilon", "alpha", "m", "p") for word in (f"--{name}", PLAN[name])]
# Labels and confidences as they come: two unknown, one but for capitals, two confidences that are none.
ROWS = [
    ("billing", "0.9"),
    ("Shipping", "0.8"),
    ("refund", "0.7"),
    ("Billing ", "0.9"),
    ("billing ", "0.95"),
    ("refund", "1.7"),
    ("Shipping", "0.6"),
    ("billing", "abc"),
    ("refund", ""),
    ("", "0.5"),
]


def imported(tmp_path: Path, rows: list[tuple[str, str]], count: int = 200) -> Project:
    """A project into which such a file was brought, with a source that reads its columns."""
    project = make_project(choices=["billing", "refund"])
    file = tmp_path / "tickets.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "body", "guess", "sure"])
        for number in range(count):
            writer.writerow([f"n{number}", f"ticket {number}", *rows[number % len(rows)]])
    owner = project.created_by.username
    run(
        "import_items", project.slug, file, "--text-column", "body", "--id-column", "id", "--here", user=owner
    )
    return project


def with_source(project: Project, client: Client) -> Source:
    answer = client.post(
        reverse("source_new", args=[project.slug]),
        {
            **{"name": "fast", "backend": "recorded", "label_column": "guess", "confidence_column": "sure"},
            **{"cost_per_label": "0.01", "cost_function": "flat"},
        },
    )
    assert answer.status_code == 302, unescape(answer.content.decode())
    return project.sources.get()


@pytest.fixture
def odd(tmp_path: Path, client_of: Any) -> tuple[Project, Client]:  # noqa: F811
    project = imported(tmp_path, ROWS)
    client = client_of(project.created_by)
    with_source(project, client)
    return project, client


def page_of(client: Client, name: str, *args: object, **fields: str) -> str:
    return unescape(client.get(reverse(name, args=args), fields).content.decode())


def test_what_cannot_be_used_is_counted_by_its_kind_with_examples(odd: tuple[Project, Client]) -> None:
    seen = usability_of(odd[0].sources.get())
    assert (seen.looked_at, seen.items, seen.usable, seen.unusable) == (200, 200, 60, 140)
    assert {one.code: (one.count, one.examples) for one in seen.reasons} == {
        "unknown_label": (40, ("Shipping",)),
        "nearly_a_label": (20, ("Billing ",)),
        "score_outside": (20, ("1.7",)),
        "score_no_number": (20, ("abc",)),
        "score_missing": (20, ()),
        "no_answer": (20, ()),
    }


def test_the_sources_and_the_plan_say_it_and_nothing_starts_before_it_is_confirmed(
    odd: tuple[Project, Client],
) -> None:
    project, client = odd
    told = "of 200 answers, 140 cannot be used: 40 no label of this project (“Shipping”)"
    source = project.sources.get()
    assert told in page_of(client, "sources", project.slug)
    assert told in page_of(client, "source_edit", project.slug, source.pk)
    assert told in page_of(client, "plan", project.slug)
    assert "Can be certified, but look at the answers below" in page_of(client, "plan", project.slug)
    assert told in page_of(client, "plan_outlook", project.slug, **TYPED)
    address = reverse("plan", args=[project.slug])
    page = unescape(client.post(address, TYPED).content.decode())
    assert "Start all the same" in page
    assert told in page
    assert not project.runs.exists()
    answer = client.post(address, {**TYPED, "accept_unusable": "on"})
    assert answer.url == reverse("run", args=[project.slug, 1])
    assert project.runs.get().accepts_unusable
    event = AuditEvent.objects.get(action="run.unusable_accepted")
    assert event.actor == project.created_by
    assert event.data["sources"][0]["unusable"] == 140


def test_programs_are_refused_with_a_field_of_its_own_until_they_accept_it(
    odd: tuple[Project, Client],
) -> None:
    project, client = odd
    source = project.sources.get()
    body = client.get(reverse("api_source", args=[project.slug, source.pk])).json()["usability"]
    assert (body["looked_at"], body["usable"], body["asks"]) == (200, 60, True)
    assert {"code": "unknown_label", "count": 40, "examples": ["Shipping"]}.items() <= body["reasons"][
        0
    ].items()
    fields = {**PLAN, "m": 150}
    seen = client.post(reverse("api_plan", args=[project.slug]), fields, "application/json").json()
    assert (seen["asks_to_accept_unusable"], seen["usability"][0]["usable"]) == (True, 60)
    start = reverse("api_runs", args=[project.slug])
    answer = client.post(start, fields, "application/json")
    assert (answer.status_code, answer.json()["field"]) == (400, "accept_unusable")
    assert "140 cannot be used" in answer.json()["detail"]
    owner = project.created_by.username
    assert "140 cannot be used" in run("plan", project.slug, *WORDS, user=owner)
    assert json.loads(run("plan", project.slug, *WORDS, "--json", user=owner))["usability"][0]["asks"]
    _code, reason = ended("plan", project.slug, *WORDS, "--start", user=owner)
    assert "--accept-unusable" in reason
    assert not project.runs.exists()
    assert client.post(start, {**fields, "accept_unusable": True}, "application/json").status_code == 201


def test_a_source_of_which_every_answer_can_be_used_asks_nothing(tmp_path: Path, client_of: Any) -> None:  # noqa: F811
    rows = [("billing", str(0.5 + number / 100)) for number in range(40)]
    project = imported(tmp_path, rows)
    client = client_of(project.created_by)
    with_source(project, client)
    assert "all 200 answers can be used" in page_of(client, "sources", project.slug)
    assert client.post(reverse("plan", args=[project.slug]), TYPED).status_code == 302


@pytest.mark.parametrize(("bad", "asks"), [(1, False), (20, False), (21, True)])
def test_more_than_a_tenth_asks(bad: int, asks: bool) -> None:
    assert usability_of_sources(*source_of(200, bad=bad)).sources[0].asks == asks


def source_of(count: int, *, bad: int = 0, score: str = "") -> tuple[Project, list[Source]]:
    """A source whose first `bad` answers are no labels; its scores differ, or are all `score`."""
    project = make_project()
    for number in range(count):
        label = "bird" if number < bad else "cat"
        make_items(project, 1, data={"guess": label, "sure": score or str(number / count)})
    params = {"label_column": "guess", "confidence_column": "sure"}
    source = save_source(
        project=project,
        user=project.created_by,
        name="fast",
        backend="recorded",
        params=params,
        cost_per_label=0,
    )
    return project, [source]


def test_a_score_that_is_the_same_for_all_asks() -> None:
    seen = usability_of_sources(*source_of(60, score="0.9")).sources[0]
    assert (seen.score_values, seen.commonest, seen.asks) == (1, 60, True)


def test_no_more_is_looked_at_than_so_many_items_spread_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_answers, "LOOKED_AT", 20)
    project, sources = source_of(100, bad=50)
    seen = usability_of_sources(project, sources).sources[0]
    assert (seen.looked_at, seen.items, seen.sampled) == (20, 100, True)
    assert 8 <= seen.unusable <= 12


def test_a_plan_in_which_people_label_nearly_everything_says_so(tmp_path: Path, client_of: Any) -> None:  # noqa: F811
    project = imported(tmp_path, [("billing", "0.9"), *[("parcel", "0.8")] * 39])
    client = client_of(project.created_by)
    with_source(project, client)
    page = page_of(client, "plan_outlook", project.slug, **{**TYPED, "m": "60", "epsilon": "20"})
    assert "Nearly everything would go to people: about 196 of 200 items" in page
    assert "Can be certified" not in page
    fields = {**PLAN, "m": 60, "epsilon": "0.2"}
    seen = client.post(reverse("api_plan", args=[project.slug]), fields, "application/json").json()
    assert (seen["people_at_least"], seen["nearly_all_to_people"]) == (196, True)


def test_a_draw_of_nearly_all_items_says_so_too() -> None:
    world = make_world(100)
    plan = {name: PLAN[name] for name in ("epsilon", "alpha", "p")}
    assert "about 90 of 100" in outlook_of_plan(project=world.project, m=100, **plan).nearly_all
    assert outlook_of_plan(project=world.project, m=60, **plan).nearly_all == ""


def stopped_run(project: Project) -> tuple[Run, Job]:
    """A run that was started past the question, as where the answers of a model are not known before."""
    started = start_run(project=project, user=project.created_by, **{**PLAN, "m": 150})
    job = project.jobs.get(kind="prepare_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    started.refresh_from_db()
    return started, job


def test_a_run_stops_before_people_are_asked_until_somebody_accepts_it(odd: tuple[Project, Client]) -> None:
    project, client = odd
    started, job = stopped_run(project)
    assert (started.state, job.state) == (Run.State.PREPARING, Job.State.FAILED)
    assert "fast: 140 of 200" in job.error
    assert "Shipping" not in job.error  # people may be asked about any of these items
    assert not WorkItem.objects.filter(batch__project=project).exists()
    page = page_of(client, "run", project.slug, 1)
    assert "Stopped before people are asked" in page
    assert "Go on all the same" in page
    answer = client.post(reverse("run_accept_unusable", args=[project.slug, 1]))
    assert answer.status_code == 302
    jobs.run(job.pk)
    started.refresh_from_db()
    assert started.state == Run.State.CALIBRATING
    assert "fast: 140 of 200" in AuditEvent.objects.get(action="run.unusable_accepted").data["told"]
    assert "does not wait" in unescape(
        client.post(answer.url + "accept-unusable/", follow=True).content.decode()
    )


def test_a_program_lets_it_go_on_once(odd: tuple[Project, Client]) -> None:
    project, client = odd
    stopped_run(project)
    address = reverse("api_run_accept_unusable", args=[project.slug, 1])
    assert [client.post(address).status_code for _ in range(2)] == [204, 409]


def test_the_reasons_that_answers_are_stored_with_are_known_by_their_kind() -> None:
    """Those that readers and scores give. Of words without a code nothing is read out."""
    reader = reader_of(make_project(choices=["cat", "dog"]))
    labels = known_labels(reader)
    assert kind_of_reason(reader("Cat ")[1], labels) == ("nearly_a_label", "Cat ")
    assert kind_of_reason(reader("it's")[1], labels) == ("unknown_label", "it's")
    assert kind_of_reason(reader("  ")[1], labels)[0] == "no_answer"
    number = reader_of(make_project(task_type="number", choices=[]))
    assert kind_of_reason(number("ten")[1], labels) == ("not_a_number", "ten")
    assert kind_of_reason("unknown label 'Cat '", labels) == ("other", "unknown label 'Cat '")
    assert kind_of_reason(ValueReason("the dog ate it", "of a later version"), labels) == (
        "other",
        "the dog ate it",
    )
    scored = make_score("recorded")
    assert kind_of_reason(scored({"confidence": ""}).reason, labels)[0] == "score_missing"
    assert kind_of_reason(scored({"confidence": "1.5"}).reason, labels) == ("score_outside", "1.5")
    assert kind_of_reason(scored({"confidence": "87 %"}).reason, labels) == ("score_no_number", "87 %")
    assert (
        kind_of_reason(scored({"confidence": "1", "finish_reason": "length"}).reason, labels)[0] == "cut_off"
    )


def test_accepting_is_refused_where_nothing_waits_for_it() -> None:
    world = make_world(60)
    started = world.calibrated(m=40)
    with pytest.raises(Exception, match="does not wait"):
        accept_unusable(run=started, user=world.manager)
