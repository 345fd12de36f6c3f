"""Runs of projects that ask for something else than one choice, from the data to the verified delivery."""

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest

from annotation.common.files import store_file
from annotation.common.value_reader import as_text
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Project
from annotation.permissions import access_to
from annotation.task_types import TASK_TYPES
from routing.core.losses import LossUnavailableError, make_loss
from routing.core.verify import main as verify
from routing.embeddings import EMBEDDER
from routing.items.history import item_history
from routing.items.table import item_rows
from routing.models import ItemScore, Prediction, Run
from routing.runs.certify import analyse
from routing.runs.plan_options import NO_EMBEDDINGS, loss_of, losses_of_project, plan_options
from routing.runs.route import route
from routing.sources.manage import save_source
from routing.sources.warnings import source_warnings
from testbed.factories import add_member, make_project
from testbed.scripted_server import Reply, Request, ScriptedServer
from testbed.worlds import LONG, NUMBERS, SETS, World, make_world
from tests.routing.delivery.test_deliveries import delivered, lines_of, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
OFFERED = {
    "single_choice": ["zero_one"],
    "multiple_choice": ["set_equal", "jaccard"],
    "number": ["numeric"],
    "math": ["math_equivalence", "exact_match"],
    "short_text": ["exact_match"],
    "long_text": ["cosine_distance", "token_f1", "exact_match", "measured_elsewhere"],
    "code": ["token_f1", "zero_one", "measured_elsewhere"],
    "boxes": ["box_f1", "boxes_right", "measured_elsewhere"],
    "masks": ["mask_dice", "masks_right", "measured_elsewhere"],
    "opaque": ["measured_elsewhere"],
}
"""The losses of each task type, the default first."""


def letters(request: Request) -> dict[str, Any]:
    """An embedding that counts letters, given in another order than it was asked for."""
    texts = request.body["input"]
    rows = [
        {"index": index, "embedding": [text.count(letter) + 0.01 for letter in "acdehinostuw"]}
        for index, text in enumerate(texts)
    ]
    return {"data": rows[::-1], "model": request.body["model"]}


def verified(files: dict[str, bytes], folder: Any, *more: str) -> bool:
    for name in ("certificate.json", "draw.jsonl"):
        (folder / name).write_bytes(files[name])
    return verify([str(folder / "certificate.json"), str(folder / "draw.jsonl"), *more]) == 0


def wrong_labels(world: World, files: dict[str, bytes]) -> int:
    return sum(line["label"] != world.truth[str(line["external_id"])] for line in lines_of(files))


def imported_numbers(tmp_path: Any) -> World:
    """The numbers of a generated world, brought in as a file and labelled through the queue."""
    made = make_world(300, answers=NUMBERS, error=(lambda u: 0.5 * u, lambda u: 0.1 * u))
    names = ["id", "text", *(name for name in made.project.columns if name != "text")]
    out = io.StringIO()
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    for item in made.project.items.order_by("position"):
        writer.writerow({"id": item.external_id, **item.data})
    project = make_project(task_type="number", choices=(), human_cost=Decimal(8))
    user = project.created_by
    stored = store_file(
        project=project,
        content=io.BytesIO(out.getvalue().encode()),
        original_name="numbers.csv",
        media_type="text/csv",
    )
    job = start_import(
        project=project,
        user=user,
        stored_file=stored,
        mapping=ColumnMapping(id_column="id", text_column="text"),
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    for number, cost in enumerate(("1", "2"), start=1):
        save_source(
            project=project,
            user=user,
            name=f"Model {number}",
            backend="recorded",
            params={"label_column": f"model{number}", "confidence_column": f"confidence{number}"},
            cost_per_label=Decimal(cost),
        )
    return World(project, user, [add_member(project) for _ in range(2)], made.truth)


def analyse_and_route(world: World, run: Run) -> None:
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    run.refresh_from_db()


def test_numbers_from_the_import_to_the_verified_delivery(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    world = imported_numbers(tmp_path)
    assert not source_warnings(world.project, list(world.project.sources.order_by("position")))
    run = world.start()
    world.do("prepare_run")
    world.finish()
    run.refresh_from_db()
    analyse_and_route(world, run)
    world.finish()
    run.refresh_from_db()

    assert (run.state, run.loss) == (Run.State.COMPLETE, "numeric")
    assert run.certificate.certified
    assert not Prediction.objects.filter(value__isnull=True).exists()
    files = delivered(world, run)
    assert wrong_labels(world, files) <= 30  # epsilon = 0.1 of 300, fulfilled in this seeded world
    by_source = {line["source"] for line in lines_of(files)}
    assert by_source == {"person", "Model 1", "Model 2"}
    # A spreadsheet reads negative numbers as numbers, and the names of choices are not there.
    assert [row["label"] for row in rows_of(files)] == [line["label"] for line in lines_of(files)]
    assert {line["label_name"] for line in lines_of(files)} == {None}
    assert verified(files, tmp_path)


@pytest.mark.parametrize("loss", ["set_equal", "jaccard"])
def test_several_choices_from_plan_to_verified_delivery(loss, tmp_path):
    world = make_world(300, answers=SETS, error=(lambda u: 0.5 * u, lambda u: 0.1 * u))
    run = world.complete(loss="" if loss == "set_equal" else loss)
    assert run.loss == loss
    assert run.certificate.certified
    assert run.certificate.figures["chain"]["policies"]
    files = delivered(world, run)
    lines, rows = lines_of(files), rows_of(files)
    assert [] in [line["label"] for line in lines]
    assert [row["label"] for row in rows] == [as_text(line["label"]) for line in lines]  # type: ignore[arg-type]
    assert [line["label_name"] for line in lines] == [line["label"] for line in lines]
    if loss == "set_equal":
        assert wrong_labels(world, files) <= 30
    assert verified(files, tmp_path)
    draw = [json.loads(line) for line in files["draw.jsonl"].splitlines()]
    assert all(isinstance(json.loads(row["label"]), list) for row in draw if row["label"] is not None)


def test_a_certificate_of_numbers_that_was_tampered_with_is_found(tmp_path):
    world = make_world(120, answers=NUMBERS, error=(lambda u: 0.1 * u,), costs=("1",))
    files = delivered(world, world.complete(m=60))
    assert verified(files, tmp_path)
    label = next(row["label"] for row in map(json.loads, files["draw.jsonl"].splitlines()) if row["label"])
    files["draw.jsonl"] = files["draw.jsonl"].replace(f'"label":"{label}"'.encode(), b'"label":"999999"')
    assert not verified(files, tmp_path)


def test_a_tolerance_is_part_of_the_plan():
    world = make_world(120, answers=NUMBERS)
    run = world.start(m=60, loss_params={"absolute": "10"})
    loss = make_loss(run.loss, run.loss_params)
    assert loss("1,000", "1010.0") == 0
    assert loss("1000", "1011") == 1


def test_items_are_found_by_one_of_several_labels_and_told_in_names():
    world = make_world(60, answers=SETS)
    world.complete(m=30)
    world.project.choices.filter(key="emu").update(name="Emu")
    access = access_to(world.manager, world.project.slug)
    rows = item_rows(world.project, access, filters={"human": "emu"}, size=200).rows
    assert rows
    for row in rows:
        assert "emu" in row.label
        assert "Emu" in row.label_name
    given = [item for item, value in world.truth.items() if "emu" in value]
    assert {row.external_id for row in rows} <= set(given)
    everything = item_rows(world.project, access, size=200).rows
    nothing = next(row for row in everything if row.label == [])
    assert nothing.label_name == "none of them"
    history = item_history(world.project, access, nothing.id)
    assert [label.name for label in history.labels] == ["none of them"]
    assert history.predictions


def test_a_column_without_numbers_is_told_before_anything_is_spent():
    world = make_world(30, answers=NUMBERS, change=lambda index, row: row.update(model2="about 3"))
    sources = list(world.project.sources.order_by("position"))
    assert source_warnings(world.project, sources) == (
        "Model 2: none of the 30 items looked at has an answer that can be read in the column 'model2'. "
        "Where a later model has no usable answer, the item goes to the one after it, or to people.",
    )


class TestScores:
    def test_samples_of_numbers_agree_whatever_their_spelling(self):
        def change(index: int, row: dict[str, str]) -> None:
            row["model1"] = "1000"
            row["samples"] = '["1,000", "1e3", " 1000.0", "no idea"]'

        world = make_world(60, answers=NUMBERS, change=change)
        source = world.project.sources.order_by("position")[0]
        save_source(
            source=source,
            project=world.project,
            user=world.manager,
            name=source.name,
            backend="recorded",
            params={"label_column": "model1", "samples_column": "samples"},
            cost_per_label=Decimal(1),
        )
        world.start(m=30, score="ensemble")
        world.do("prepare_run")
        values = set(ItemScore.objects.filter(name="ensemble").values_list("value", flat=True))
        assert values == {0.25}


class TestLosses:
    def project(self, task_type: str) -> Project:
        return make_project(
            task_type=task_type, choices=("a", "b") if TASK_TYPES[task_type].has_labels else ()
        )

    @pytest.mark.parametrize("task_type", TASK_TYPES)
    def test_each_task_type_offers_what_suits_it_and_the_default_first(self, task_type):
        project = self.project(task_type)
        menu = plan_options(project).loss
        assert [option.name for option in menu] == OFFERED[task_type]
        usable = [option.name for option in menu if not option.refusal]
        assert [option.name for option in menu if option.recommended] == usable[:1]
        assert all(option.title != option.name for option in menu)

    @pytest.mark.parametrize(
        ("task_type", "loss"),
        [
            ("multiple_choice", "zero_one"),
            ("number", "math_equivalence"),
            ("short_text", "set_equal"),
            ("math", "numeric"),
        ],
    )
    def test_a_loss_for_another_kind_of_label_is_refused(self, task_type, loss):
        with pytest.raises(InputError, match="other kinds of labels") as refused:
            loss_of(self.project(task_type), loss, {})
        assert refused.value.where == "loss"

    def test_losses_of_ones_own_come_last(self, settings):
        settings.HYPAC_LOSSES = ["tests.routing.runs.own_loss:HALF"]
        names = [option.name for option in plan_options(self.project("code")).loss]
        assert names == [*OFFERED["code"], "tests.routing.runs.own_loss:HALF"]

    def test_lists_have_no_separator(self):
        with pytest.raises(InputError, match="separator") as refused:
            loss_of(self.project("multiple_choice"), "jaccard", {"separator": "|"})
        assert refused.value.where == "loss_params"

    def test_a_loss_of_ones_own_may_have_a_separator(self, settings):
        settings.HYPAC_LOSSES = ["tests.routing.runs.own_loss:Lists"]
        chosen = loss_of(self.project("multiple_choice"), settings.HYPAC_LOSSES[0], {"separator": "|"})
        assert chosen.params == {"separator": "|"}


class TestLongTexts:
    @pytest.fixture
    def project(self) -> Project:
        return make_project(task_type="long_text", choices=())

    def test_without_an_embedding_model_they_are_compared_by_their_words(self, project):
        assert loss_of(project, "", {}).name == "token_f1"
        with pytest.raises(InputError) as refused:
            loss_of(project, "cosine_distance", {})
        assert (refused.value.where, refused.value.message) == ("loss", NO_EMBEDDINGS)
        assert [option.refusal for option in plan_options(project).loss] == [NO_EMBEDDINGS, "", "", ""]

    @pytest.mark.parametrize("params", [{"embedder": "os:remove"}, {"model": "another"}])
    def test_nobody_names_code_or_a_model_on_a_page(self, project, params, settings):
        settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = "http://127.0.0.1:1/v1", "small"
        with pytest.raises(InputError, match="whoever runs this server") as refused:
            loss_of(project, "cosine_distance", params)
        assert refused.value.where == "loss_params"
        plan_options(project, loss="cosine_distance", loss_params=params)
        settings.HYPAC_LOSSES = ["cosine_distance"]
        with pytest.raises(InputError):
            loss_of(make_project(), "cosine_distance", params)

    def test_with_one_they_go_all_the_way(self, settings, tmp_path):
        settings.HYPAC_PRIVATE_HOSTS, settings.HYPAC_EMBEDDINGS_KEY = ["127.0.0.1"], "secret"
        with ScriptedServer() as server:
            server.route("POST", "/v1/embeddings", letters)
            settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = server.url, "letters"
            world = make_world(150, answers=LONG, error=(lambda u: 0.5 * u, lambda u: 0.1 * u))
            run = world.complete(m=80, p=Decimal(1), epsilon=Decimal("0.2"))
            assert (run.loss, run.bound) == ("cosine_distance", "betting_upper")
            files = delivered(world, run)
            assert verified(files, tmp_path, "--allow-loss", EMBEDDER)
            # Texts are asked for together, and each of them once.
            asked = [text for request in server.requests for text in request.body["input"]]
            assert len(server.requests) < 10
            assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret"}
            assert len(asked) == len(set(asked))
        assert b"secret" not in files["certificate.json"]
        assert not verified(files, tmp_path)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (Reply(500, "boom"), "status 500"),
            ({"data": []}, "one vector for each of 2 texts"),
            (
                {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
                "one vector for each",
            ),
            (
                {"data": [{"index": 0, "embedding": "x"}, {"index": 1, "embedding": [1]}]},
                "one vector for each",
            ),
            (b"no json", "one vector for each"),
        ],
    )
    def test_an_answer_that_is_no_embedding_is_told(self, project, settings, answer, words):
        settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
        with ScriptedServer() as server:
            server.route("POST", "/v1/embeddings", answer)
            settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = server.url, "letters"
            with pytest.raises(LossUnavailableError, match=words):
                loss_of(project, "", {}).function("one", "two")

    def test_while_it_is_away_a_job_tries_again_and_counts_nothing_as_wrong(self, settings):
        settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
        settings.HYPAC_EMBEDDINGS_MODEL = "letters, later"
        with ScriptedServer() as server:
            server.route("POST", "/v1/embeddings", Reply(503, "loading"))
            settings.HYPAC_EMBEDDINGS_URL = server.url
            world = make_world(100, answers=LONG)
            run = world.start(m=40, pilot_size=30)
            job = world.project.jobs.get(kind="prepare_run")
            jobs.run(job.pk)
            job.refresh_from_db()
            assert job.state != Job.State.DONE
            assert "status 503" in job.error
            run.refresh_from_db()
            assert run.chains is None
            server.route("POST", "/v1/embeddings", letters)
            Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
            world.do("prepare_run")
        run.refresh_from_db()
        assert run.chains

    def test_a_server_that_is_away_is_no_loss_of_a_pair(self, project, settings):
        settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = "http://127.0.0.1:1/v1", "small"
        chosen = loss_of(project, "", {})
        assert chosen.params == {"embedder": "routing.embeddings:embed", "model": "small"}
        assert losses_of_project(project)[0] == "cosine_distance"
        with pytest.raises(LossUnavailableError):
            chosen.function("one text", "another text")
