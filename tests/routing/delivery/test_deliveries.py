"""What is delivered, row by row and byte by byte."""

import csv
import hashlib
import io
import json
from decimal import Decimal

import pytest

from annotation.labelling import queue
from annotation.models import Item, Job, Label
from routing.core.keys import V_MAX, Key
from routing.delivery.deliver import deliver
from routing.labels.page import ADDED, OF_SOME_RUNS, DeliveryInfo, Row, added_names
from routing.models import Delivery, PoolItem, Prediction, Route, Run, Source
from routing.runs import route as routing_stage
from routing.runs.cancel import cancel_run
from routing.runs.queries import run_report
from routing.runs.route import route
from testbed.factories import make_items
from testbed.worlds import World, files_of, make_world
from tests.routing.delivery.written import files_written

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def delivered(world: World, run: Run) -> dict[str, bytes]:
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    return files_of(Delivery.objects.filter(run=run).order_by("-number")[0])


def rows_of(files: dict[str, bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files["labels.csv"].decode(), newline="")))


def lines_of(files: dict[str, bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in files["labels.jsonl"].splitlines()]


def write(name: str, columns: list[str], rows: list[tuple[dict[str, str], Row]]) -> bytes:
    files, _ = files_written(name, DeliveryInfo(columns), rows)
    (content,) = files.values()
    return content


def test_two_deliveries_of_the_same_labels_are_the_same_bytes_and_files():
    world = make_world(100)
    run = world.complete(m=40)
    first, second = delivered(world, run), delivered(world, run)
    assert first == second
    one, two = Delivery.objects.filter(run=run)
    assert set(one.files.values_list("file", flat=True)) == set(two.files.values_list("file", flat=True))
    assert {one.number, two.number} == {1, 2}


def test_the_manifest_names_every_other_file_with_its_size_and_hash():
    world = make_world(40)
    files = delivered(world, world.complete(m=20))
    manifest = json.loads(files.pop("manifest.json"))
    assert (manifest["format"], manifest["version"]) == ("hypac-manifest", 1)
    assert manifest["files"] == {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    }


def test_original_columns_come_first_and_in_order():
    world = make_world(60)
    files = delivered(world, world.complete(m=20))
    header = next(csv.reader(io.StringIO(files["labels.csv"].decode())))
    original = ["text", "model1", "confidence1", "model2", "confidence2"]
    ours = [name for name in ADDED if name not in OF_SOME_RUNS]
    assert header == [*original, *ours]
    assert list(lines_of(files)[0]) == [*original, *ours]
    assert [row["text"] for row in rows_of(files)] == [f"text {index}" for index in range(60)]


def test_every_row_says_where_its_label_comes_from():
    world = make_world(200)
    run = world.complete(m=80)
    pool = {row.item_id: row for row in PoolItem.objects.filter(run=run)}
    labels = {label.item_id: label for label in Label.objects.all()}
    drawn = {row.item_id: row for row in run.draw.items.all()}
    routes = dict(Route.objects.filter(run=run).values_list("item_id", "position"))
    for item, row in zip(Item.objects.order_by("position"), lines_of(delivered(world, run)), strict=True):
        assert row["uncertainty"] == pool[item.pk].u
        assert row["certificate_id"] == run.certificate.sha256
        assert row["run"] == 1
        assert row["asked"] == (item.pk in drawn and drawn[item.pk].asked)
        assert row["p_i"] == ("0.9" if item.pk in drawn else None)
        if item.pk in labels:
            assert (row["label"], row["source"]) == (labels[item.pk].value, "person")
            assert row["annotator"] == labels[item.pk].annotator.username
        else:
            source = f"Model {routes[item.pk]}"
            prediction = Prediction.objects.get(item=item, source__name=source)
            assert (row["label"], row["source"], row["annotator"]) == (prediction.value, source, None)


def test_a_label_by_a_person_goes_before_a_model_and_a_correction_before_what_it_replaces():
    world = make_world(100)
    run = world.complete(m=40)
    label = Label.objects.filter(work_item__batch=run.calibration_batch)[0]
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
    run.refresh_from_db()
    files = delivered(world, run)
    row = next(row for row in rows_of(files) if row["external_id"] == label.item.external_id)
    assert (row["label"], row["source"]) == (other, "person")
    assert "marked invalid" in files["README.md"].decode()
    assert files["certificate.json"].decode() == run.certificate.document


def test_a_partial_delivery_names_and_counts_its_blanks():
    world = make_world(100)
    run = world.routed(m=40)
    waiting = run.routed_batch.work_items.count()
    assert waiting
    files = delivered(world, run)
    delivery = Delivery.objects.get(run=run)
    assert (delivery.rows, delivery.blanks) == (100, waiting)
    blank = [row for row in rows_of(files) if not row["label"]]
    assert {row["reason"] for row in blank} == {"it waits for a person"}
    assert len(blank) == waiting
    card = files["README.md"].decode()
    assert "partial" in card
    assert "a larger share may differ from what a person would give" in card


def test_a_whole_delivery_says_nothing_of_what_is_missing():
    world = make_world(60)
    run = world.complete(m=20)
    assert "a larger share" not in delivered(world, run)["README.md"].decode()


def test_items_that_came_later_are_blank_and_say_so():
    world = make_world(60)
    run = world.complete(m=20)
    make_items(world.project, ["late"], data={"text": "late"})
    late = rows_of(delivered(world, run))[-1]
    assert late["label"] == ""
    assert late["certificate_id"] == ""
    assert "came after the pool was frozen" in late["reason"]


def test_items_that_an_earlier_run_had_used_say_so():
    world = make_world(120)
    cancel_run(run=world.calibrating(m=30), user=world.manager)
    run = world.complete(m=30, target="population")
    reasons = {row["reason"] for row in rows_of(delivered(world, run))} - {""}
    assert reasons == {"not covered by run 2: an earlier run had used it before the pool was frozen"}


def test_a_delivery_whose_worker_died_at_the_very_end_is_made_once():
    world = make_world(60)
    run = world.complete(m=20)
    job = deliver(run=run, user=world.manager)
    world.do("deliver_run")
    # As if the last thing that the worker writes had not been written.
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, finished_at=None)
    job = world.do("deliver_run")
    assert job.result["delivery"] == Delivery.objects.get(run=run).pk


def test_what_nobody_could_label_stays_blank_where_people_should():
    world = make_world(100)
    run = world.routed(m=40)
    count = world.give_up_all()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    blank = [row for row in rows_of(delivered(world, run)) if not row["label"]]
    assert [row["reason"] for row in blank] == ["nobody could label it"] * count


# Signs in their widths, and behind what some spreadsheets do not look at.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫")
BEHIND = (
    " =",
    " -",
    "\n\n=",
    "\xa0=",
    "\u3000+",
    "\ufeff=",
    "\u200b\xa0@",
    "\x0b=",
    "\u2028=",
    " ＝",
    "\n-5",
)


@pytest.mark.parametrize("start", FORMULAS + BEHIND)
def test_csv_cells_that_start_a_formula_become_text_and_jsonl_stays_exact(start):
    evil = f"{start}HYPERLINK('http://x')"
    rows = [({"text": evil, evil: "1"}, Row(external_id=evil, label=evil, source=evil))]
    table = list(csv.reader(io.StringIO(write("csv", ["text", evil], rows).decode(), newline="")))
    assert table[0][1] == f"'{evil}"
    for name in ("text", "external_id", "label", "source"):
        assert table[1][table[0].index(name)] == f"'{evil}"
    line = json.loads(write("jsonl", ["text", evil], rows))
    assert line["text"] == line["label"] == evil
    assert line[evil] == "1"


@pytest.mark.parametrize(
    "cell",
    [" text", "\u00a0a = b", "-5", " -5", "-0.25", "a\n=b", "'words", "%", "|cmd", "–x", "\u200bwords"],
)
def test_csv_cells_that_are_no_formula_stay_as_they_are(cell):
    rows = [({"text": cell}, Row(external_id="1", label=cell))]
    (row,) = csv.DictReader(io.StringIO(write("csv", ["text"], rows).decode(), newline=""))
    assert row["text"] == row["label"] == cell


def test_csv_quotes_what_needs_it():
    row = ({"text": 'a "b", c\nd\u2028 é'}, Row(external_id="1"))
    content = write("csv", ["text"], [row]).decode()
    assert next(csv.DictReader(io.StringIO(content, newline="")))["text"] == 'a "b", c\nd\u2028 é'


def test_names_that_are_taken_get_a_prefix():
    names = added_names(["label", "hypac_label", "run", "text"])
    assert names["label"] == "hypac_hypac_label"
    assert names["run"] == "hypac_run"
    assert names["source"] == "source"
    header = write("csv", ["label", "run"], []).decode().split("\r\n")[0].split(",")
    assert header[:2] == ["label", "run"]
    assert len(set(header)) == len(header)


def test_an_answer_that_cannot_be_used_passes_the_item_on(monkeypatch):
    """All items are sent to model 1. It is of no use for every fifth item, model 2 for every tenth."""

    def change(index, row):
        if index % 10 == 0:
            row["model1"], row["model2"] = "", "unicorn"
        if index % 10 == 5:
            row["model1"] = "unicorn"

    everything = Key(1.0, V_MAX)
    monkeypatch.setattr(routing_stage, "thresholds_from_json", lambda _: (everything, everything))
    world = make_world(200, error=(lambda u: 0.0, lambda u: 0.0), change=change)
    run = world.complete(m=80, accept_unusable=True)
    assert Route.objects.filter(run=run, position=1).count() == 200
    reasons = Prediction.objects.filter(source__position=1, value__isnull=True).values_list(
        "reason", flat=True
    )
    assert len(reasons) == 40
    assert set(reasons) == {"no label in the column model1", "unknown label 'unicorn'"}

    drawn = set(run.calibration_batch.work_items.values_list("item__external_id", flat=True))
    for index, row in enumerate(rows_of(delivered(world, run))):
        if row["external_id"] in drawn or index % 10 == 0:
            assert row["source"] == "person"
        else:
            assert row["source"] == ("Model 2" if index % 10 == 5 else "Model 1")
    asked = set(run.routed_batch.work_items.values_list("item__external_id", flat=True))
    assert asked == {f"t{index}" for index in range(0, 200, 10)} - drawn

    # Whoever is asked in vain is paid, too.
    called = 1 * (200 - len(drawn)) + 2 * len([1 for index in range(0, 200, 5) if f"t{index}" not in drawn])
    saving = 1 - Decimal(called + 8 * len(asked)) / (8 * (200 - len(drawn)))
    assert run_report(run).routing_saving == pytest.approx(saving)


def test_an_item_that_no_model_can_label_goes_to_people():
    def change(index, row):
        row["confidence1"] = "0.999999"
        if index % 5 == 0:
            row["model1"] = row["model2"] = "unicorn"

    world = make_world(200, error=(lambda u: 0.0, lambda u: 0.0), change=change)
    run = world.complete(m=80, epsilon=Decimal("0.2"), accept_unusable=True)
    rows = rows_of(delivered(world, run))
    assert {row["source"] for row in rows[::5]} == {"person"}
    assert all(row["label"] == world.truth[row["external_id"]] for row in rows)


def test_answers_that_another_run_asked_for_are_delivered_as_well():
    """Between the analysis and the routing of the run, another one asks its second model, with another score
    than this one computes."""
    world = make_world(200)
    run = world.analysed(m=80, epsilon=Decimal("0.2"))
    first, second = world.project.sources.order_by("position")
    for source, position in ((first, 3), (second, 1), (first, 2)):
        Source.objects.filter(pk=source.pk).update(position=position)
    other = world.start(score="calibrated", m=20)
    world.do("prepare_run")
    cancel_run(run=other, user=world.manager)

    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    rows = rows_of(delivered(world, run))
    assert {"Model 1", "Model 2"} <= {row["source"] for row in rows}
    assert [row["reason"] for row in rows if not row["label"]] == []
