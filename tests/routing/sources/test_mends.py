"""Spellings that a source may use beside the labels' own: chosen by somebody, kept as a part of the source,
and never changed under a run.
"""

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import AuditEvent
from annotation.projects.lifecycle import duplicate_project
from routing.delivery.about_data import about_data
from routing.models import MendVersion, Prediction, Source
from routing.runs import start
from routing.runs.measure import start_measurement
from routing.runs.measurements import measured_for
from routing.sources.backend_for import backend_for, fingerprint_of
from routing.sources.manage import save_source
from routing.sources.mends import MendingReader, Mends, every_fingerprint, reader_for
from routing.sources.save_mends import save_mends
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.test_script_commands import ended, run
from tests.routing.sources.test_health import looked_at
from tests.routing.sources.test_usability import PLAN

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
LABELS = {"Billing": "billing", "Delivery": "delivery", "No reply": "no_reply"}


def read_with(*, several: bool = False, **mends: Any) -> MendingReader:
    keys = {**LABELS, **{key: key for key in LABELS.values()}}
    return MendingReader("multiple_choice" if several else "single_choice", keys, Mends(**mends))


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("Billing", "billing"),
        ("BILLING", "billing"),
        ("no   REPLY ", "no_reply"),
        ("Shipping", "delivery"),
        (" shipping", "delivery"),
        ("Parcel", None),
        ("", None),
        (7, None),
    ],
)
def test_what_is_chosen_is_read_and_nothing_else(given: Any, value: str | None) -> None:
    read = read_with(blanks=True, capitals=True, labels={"Shipping": "delivery"})
    assert read(given)[0] == value


def test_each_mend_is_chosen_by_itself() -> None:
    assert read_with(capitals=True)("no  reply")[0] is None
    assert read_with(capitals=True)("no reply")[0] == "no_reply"
    assert read_with(blanks=True)("No  reply")[0] == "no_reply"
    assert read_with(blanks=True)("no  reply")[0] is None
    assert read_with(labels={"Shipping": "delivery"})("shipping")[0] is None


def test_a_spelling_of_two_labels_means_none_and_a_label_stays_what_it_is() -> None:
    read = MendingReader(
        "single_choice", {"US": "us1", "us": "us2", "Us all": "all", "all": "all"}, Mends(capitals=True)
    )
    assert [read(text)[0] for text in ("US", "us", "Us", "uS", "us ALL")] == ["us1", "us2", None, None, "all"]


def test_labels_of_several_are_mended_one_by_one() -> None:
    read = read_with(several=True, capitals=True, labels={"Shipping": "delivery"})
    assert read("billing; Shipping")[0] == ["billing", "delivery"]
    assert read(["BILLING", "Parcel"])[0] is None
    assert read("SHIPPING")[0] == ["delivery"]


@pytest.fixture
def source() -> Source:
    """Twenty answers: ten labels, five but for capitals, five of another name."""
    project = make_project(choices=["billing", "delivery"])
    for number in range(20):
        guess = ("billing", "delivery", "Billing", "Shipping")[number % 4]
        make_items(project, 1, data={"guess": guess, "sure": str(number / 20)})
    params = {"label_column": "guess", "confidence_column": "sure"}
    return save_source(
        project=project,
        user=project.created_by,
        name="fast",
        backend="recorded",
        params=params,
        cost_per_label=0,
    )


def mend(source: Source, **mends: Any) -> Mends:
    return save_mends(source=source, user=source.project.created_by, **mends)


def test_mended_answers_count_as_usable_and_the_fingerprint_is_another(source: Source) -> None:
    plain = fingerprint_of(source)
    assert plain == backend_for(source).fingerprint()
    assert looked_at(source).usable.usable == 10
    mend(source, capitals=True)
    assert looked_at(source).usable.usable == 15
    first = fingerprint_of(source)
    mend(source, capitals=True, labels={"Shipping": "delivery"})
    assert looked_at(source).usable.usable == 20
    assert len({plain, first, fingerprint_of(source)}) == 3
    assert set(every_fingerprint(source, plain)) == {plain, first, fingerprint_of(source)}
    mend(source)
    assert (fingerprint_of(source), looked_at(source).usable.usable) == (plain, 10)
    assert list(MendVersion.objects.values_list("number", "labels")) == [
        *((1, {}), (2, {"Shipping": "delivery"}), (3, {})),
    ]
    assert AuditEvent.objects.filter(action="source.mended").count() == 3


def test_the_same_again_is_no_new_version(source: Source) -> None:
    assert mend(source).number == 0
    assert [mend(source, blanks=True).number for _ in range(2)] == [1, 1]


def test_a_version_is_a_fact(source: Source) -> None:
    mend(source, blanks=True)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        MendVersion.objects.update(capitals=True)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"billing": "delivery"}, "is a label of this project"),
        ({"Shipping": "parcel"}, "is to mean is no label"),
        ({"  ": "billing"}, "text of at most"),
        ({"x" * 201: "billing"}, "text of at most"),
        ({f"s{number}": "billing" for number in range(201)}, "At most 200"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_reason(source: Source, labels: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        mend(source, labels=labels)
    assert refused.value.where == "labels"
    assert not MendVersion.objects.exists()


def test_where_labels_are_no_choices_there_is_nothing_to_mend() -> None:
    project = make_project(task_type="number", choices=[])
    params = {"model": "m"}
    other = save_source(
        project=project,
        user=project.created_by,
        name="sent",
        backend="uploaded",
        params=params,
        cost_per_label=0,
    )
    with pytest.raises(InputError, match="nothing to mend"):
        mend(other, capitals=True)


def test_a_run_keeps_to_what_it_read(source: Source) -> None:
    project = source.project
    mend(source, capitals=True, labels={"Shipping": "delivery"})
    begun = start.start_run(project=project, user=project.created_by, **{**PLAN, "m": 10})
    with pytest.raises(ConflictError, match="is under way"):
        mend(source)
    assert fingerprint_of(source) == begun.run_sources.get().fingerprint


def test_what_a_run_stores_is_the_label_that_was_meant(source: Source) -> None:
    project = source.project
    mend(source, capitals=True, labels={"Shipping": "delivery"})
    start.start_run(project=project, user=project.created_by, **{**PLAN, "m": 10})
    jobs.run(project.jobs.get(kind="prepare_run").pk)
    rows = Prediction.objects.order_by("item__position")
    assert [row.value for row in rows[:4]] == ["billing", "delivery", "billing", "delivery"]
    assert rows.count() == 20


def test_probabilities_and_samples_by_those_spellings_give_the_score() -> None:
    project = make_project(choices=["billing", "delivery"])
    make_items(project, 20, data={"guess": "Shipping", "p": json.dumps({"Shipping": 0.75, "BILLING": 0.25})})
    params = {"label_column": "guess", "probabilities_column": "p"}
    source = save_source(
        project=project,
        user=project.created_by,
        name="p",
        backend="recorded",
        params=params,
        cost_per_label=0,
    )
    assert looked_at(source).usable.usable == 0
    mend(source, capitals=True, labels={"Shipping": "delivery"})
    health = looked_at(source)
    assert health.usable.usable == 20
    assert [one.low for one in health.bins if one.count] == [0.75]


def test_what_was_measured_before_counts_no_more() -> None:
    world = make_world(60)
    sources = list(world.project.sources.order_by("position"))
    start_measurement(project=world.project, user=world.manager, target="dataset", size=20)
    world.do("measure")
    assert measured_for(world.project, target="dataset", sources=sources).usable is not None
    mend(sources[0], capitals=True)
    assert "how its answers are read" in measured_for(world.project, target="dataset", sources=sources).stale


def test_the_card_of_a_delivery_says_how_answers_were_read() -> None:
    world = make_world(60)
    first = world.project.sources.get(position=1)
    save_mends(source=first, user=world.manager, capitals=True, labels={"kitten": "cat"})
    run = world.analysed(m=40)
    card = "".join(about_data(run, by_source={}, blanks=0))
    assert "`Model 1` (read whatever its capitals, `kitten` as `cat`), `Model 2`" in card
    save_mends(source=first, user=world.manager)  # of a later run
    assert "".join(about_data(run, by_source={}, blanks=0)) == card


def test_a_copy_of_the_project_reads_them_so_too(source: Source) -> None:
    mend(source, labels={"Shipping": "delivery"})
    copy = duplicate_project(project=source.project, actor=source.project.created_by, name="Copy")
    assert reader_for(copy.sources.get())("Shipping")[0] == "delivery"


class TestByHand:
    def test_the_page_mends_with_one_click_and_maps_by_choice(self, source: Source, client_of: Any) -> None:  # noqa: F811
        client, project = client_of(source.project.created_by), source.project
        health, mends = (
            reverse(name, args=[project.slug, source.pk]) for name in ("source_health", "source_mends")
        )
        page = client.get(health).content.decode()
        assert "Read 5 answers whatever their capitals and blanks" in page
        assert "Shipping" in page
        assert client.post(mends, {"also": "1"}).url == health
        fields = {"capitals": "on", "spelling": ["Shipping", ""], "label": ["delivery", ""]}
        assert client.post(mends, fields).status_code == 302
        assert looked_at(source).usable.usable == 20
        assert reader_for(source).mends.document == {  # type: ignore[attr-defined]
            **{"blanks": False, "capitals": True},
            "labels": {"Shipping": "delivery"},
        }
        refused = client.post(mends, {"spelling": ["billing"], "label": ["delivery"]})
        assert "is a label of this project" in refused.content.decode()

    def test_programs_and_the_command_line_can(self, source: Source, client_of: Any) -> None:  # noqa: F811
        client, slug = client_of(source.project.created_by), source.project.slug
        address = reverse("api_source_mends", args=[slug, source.pk])
        assert client.get(address).json() == {"number": 0, "blanks": False, "capitals": False, "labels": {}}
        sent = {"capitals": True, "labels": {"Shipping": "delivery"}}
        answer = client.put(address, sent, "application/json")
        assert answer.json() == {"number": 1, "blanks": False, **sent}
        wrong = client.put(address, {"labels": {"Shipping": "x"}}, "application/json")
        assert (wrong.status_code, wrong.json()["field"]) == (400, "labels")
        owner = source.project.created_by.username
        asked = ("source", slug, "--name", "fast", "--mend", "blanks", "--map", "Shipping=billing")
        told = json.loads(run(*asked, "--json", user=owner))
        assert told["mends"] == {
            **{"number": 2, "blanks": True, "capitals": False},
            "labels": {"Shipping": "billing"},
        }
        assert told["usability"]["usable"] == 15
        run("source", slug, "--name", "fast", "--mend", "nothing", user=owner)
        assert looked_at(source).usable.usable == 10
        _code, reason = ended("source", slug, "--name", "fast", "--map", "Shipping", user=owner)
        assert "NAME=VALUE" in reason
