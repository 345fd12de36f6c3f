"""Scores of runs: which can be chosen, what is frozen, and what is stored."""

import json
import random

import pytest

from annotation.errors import InputError
from routing.core.scores import score_key
from routing.models import ItemScore, Prediction, Run
from routing.runs.cancel import cancel_run
from routing.runs.score import resolve_score
from routing.sources.manage import save_source
from routing.sources.score_fields import offered_scores
from testbed.worlds import NUMBERS, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
COLUMNS = {
    "label_column": "model1",
    "confidence_column": "confidence1",
    "token_logprobs_column": "logprobs",
    "probabilities_column": "probabilities",
    "samples_column": "samples",
    "verbalized_column": "stated",
}


def rich(index, row):
    """Recorded columns of the first model from which every score can be computed."""
    random_ = random.Random(index)
    confidence, label = float(row["confidence1"]), row["model1"]
    others = [name for name in ("cat", "dog", "emu") if name != label]
    row["logprobs"] = json.dumps([-0.01, round(-2 * (1 - confidence), 6)])
    row["probabilities"] = f"{label}: {0.8 * confidence + 0.1}; {others[0]}: 0.05; the: 0.01"
    row["samples"] = "; ".join(label if random_.random() < confidence else others[0] for _ in range(5))
    row["stated"] = json.dumps([f"{confidence:.2f}", "I cannot say", f"{100 * confidence:.0f}%"])


@pytest.fixture
def world():
    world = make_world(160, change=rich)
    source = world.project.sources.get(position=1)
    save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend="recorded",
        params=COLUMNS,
        cost_per_label=source.cost_per_label,
        source=source,
    )
    return world


def started(world, **fields):
    """A run that starts with these fields and goes no further."""
    run = world.start(**fields)
    cancel_run(run=run, user=world.manager)
    return run


def first(world):
    return world.project.sources.get(position=1)


def scores_of(run):
    rows = run.pool_items.order_by("position").values_list("u", flat=True)
    return list(rows)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("recorded", {}),
        ("logits", {}),
        ("label_probability", {}),
        ("verbalized", {"least_replies": 2}),
        ("ensemble", {"measure": "answer"}),
        ("hybrid", {"scores": ["logits", {"score": "recorded", "weight": 2}]}),
    ],
)
def test_a_run_orders_its_items_by_the_chosen_score(world, name, params):
    run = world.start(m=40, score=name, score_params=params)
    world.do("prepare_run")
    run.refresh_from_db()
    assert (run.score, run.state) == (name, Run.State.CALIBRATING)
    stored = ItemScore.objects.filter(prediction__source=first(world))
    assert set(stored.values_list("name", flat=True).distinct()) == {score_key(run.score, run.score_params)}
    assert not stored.exclude(reason="").exists()
    u = scores_of(run)
    assert len(set(u)) > 3
    recorded = [1 - float(item.item.data["confidence1"]) for item in run.pool_items.order_by("position")]
    sure = [score for score, doubt in zip(u, recorded, strict=True) if doubt < 0.3]
    unsure = [score for score, doubt in zip(u, recorded, strict=True) if doubt > 0.7]
    assert sum(sure) / len(sure) < sum(unsure) / len(unsure)


def test_scores_with_other_parameters_do_not_collide(world):
    run = world.start(m=40, score="ensemble", score_params={"measure": "answer"})
    world.do("prepare_run")
    cancel_run(run=run, user=world.manager)
    again = world.start(m=40, score="ensemble", score_params={"measure": "entropy"})
    world.do("prepare_run")
    # The model was asked once; its answers have one score for each of the two.
    answers = Prediction.objects.filter(source=first(world)).count()
    assert answers == 160
    assert ItemScore.objects.filter(prediction__source=first(world)).count() == 2 * answers
    assert scores_of(run) != scores_of(again)
    assert all(u is not None for u in scores_of(again))


def test_a_calibrated_score_is_learnt_from_labels_outside_the_pool(world):
    with pytest.raises(InputError, match=r"30 labelled items outside .* there are 0") as caught:
        resolve_score(world.project, first(world), "calibrated", {"scores": ["recorded", "logits"]})
    assert caught.value.where == "score_params"
    world.analysed(m=60)
    earlier = Run.objects.get()
    cancel_run(run=earlier, user=world.manager)
    asked = earlier.draw.items.filter(asked=True).count()
    run = world.start(m=40, score="calibrated", score_params={"scores": ["recorded", "logits"]})
    assert run.pool_size == 160 - asked
    fitted = run.score_params["fitted"]
    assert fitted["examples"] == asked
    assert set(fitted["offsets"]) <= {"cat", "dog", "emu"}
    world.do("prepare_run")
    assert all(u is not None and 0 < u < 1 for u in scores_of(run))
    # A score that is resolved already is not learnt again.
    name, params = resolve_score(world.project, first(world), run.score, run.score_params)
    assert (name, params) == (run.score, run.score_params)


def test_a_calibrated_score_tells_nothing_of_labels_that_are_still_blind(world):
    world.calibrated(m=60)
    with pytest.raises(InputError, match=r"30 labelled items outside .* there are 0"):
        resolve_score(world.project, first(world), "calibrated")


def test_what_is_wrong_is_what_the_loss_of_the_plan_calls_wrong():
    world = make_world(120, answers=NUMBERS)
    cancel_run(run=world.analysed(m=60), user=world.manager)
    plan = {"m": 20, "score": "calibrated"}
    fitted = started(world, **plan).score_params["fitted"]
    assert fitted["offsets"] == {}  # hardly a number comes twice: none gets a level of its own
    near = started(world, **plan, loss_params={"absolute": "10"}).score_params["fitted"]
    assert near["intercept"] < fitted["intercept"]
    with pytest.raises(InputError, match=r"all .* are right"):
        started(world, **plan, loss_params={"absolute": "2000"})
    with pytest.raises(InputError, match="by_label"):
        started(world, **plan, score_params={"by_label": True})


@pytest.mark.parametrize(
    ("name", "params", "where", "words"),
    [
        ("nope", {}, "score", "no score 'nope'"),
        (
            "max_softmax",
            {},
            "score",
            "needs class probabilities, and the answers of Model 2 come with confidences",
        ),
        ("hybrid", {"scores": ["recorded", "logits"]}, "score", "needs token probabilities or"),
        ("hybrid", {"scores": ["recorded", "nope"]}, "score_params", "no score 'nope'"),
        ("recorded", {"measure": 1}, "score_params", "no parameter 'measure'"),
        ("hybrid", {}, "score_params", "needs scores"),
    ],
)
def test_a_score_that_cannot_be_is_refused_in_words(name, params, where, words):
    world = make_world(10)
    second = world.project.sources.get(position=2)
    with pytest.raises(InputError) as caught:
        resolve_score(world.project, second, name, params)
    assert caught.value.where == where
    assert words in caught.value.message


def test_the_offered_scores_are_those_that_the_answers_bring(world):
    offered = {score.kind.name: score.refusal for score in offered_scores(first(world))}
    assert [name for name, refusal in offered.items() if refusal] == []
    plain = {
        score.kind.name: score.refusal for score in offered_scores(world.project.sources.get(position=2))
    }
    assert [name for name, refusal in plain.items() if not refusal] == ["recorded", "calibrated", "hybrid"]


def test_an_answer_that_was_cut_off_goes_to_the_next_source():
    def stop(index, row):
        row["stop"] = "Length" if index % 4 == 0 else "stop"

    world = make_world(40, change=stop)
    for position in (1, 2):
        source = world.project.sources.get(position=position)
        save_source(
            project=world.project,
            user=world.manager,
            name=source.name,
            backend="recorded",
            params=source.params | {"finish_reason_column": "stop"},
            cost_per_label=source.cost_per_label,
            source=source,
        )
    run = world.start(m=40, accept_unusable=True)
    world.do("prepare_run")
    cut = Prediction.objects.filter(source=first(world), finish_reason="length")
    assert cut.count() == 10
    assert {row.reason for row in cut} == {"the answer was cut off (finish_reason is 'length')"}
    assert {row.value for row in cut} == {None}
    # They are paid all the same, and as uncertain as can be.
    assert {row.cost for row in cut} == {1}
    assert {item.u for item in run.pool_items.filter(item__predictions__in=cut)} == {1.0}
