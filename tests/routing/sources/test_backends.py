"""Backends: what they answer, and what they refuse."""

import hashlib
import io
import json
from decimal import Decimal
from pathlib import Path

import joblib
import numpy as np
import pytest
from PIL import Image
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from annotation.errors import InputError
from annotation.models import Item
from routing.core.scores import make_score
from routing.sources.backends import BackendError, open_backend, predict_all
from routing.sources.backends.sklearn import available_models
from testbed.factories import make_image_items, make_items, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def models(tmp_path, settings) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    settings.HYPAC_SKLEARN_MODELS = folder
    return folder


def grey_png(level: int, size: tuple[int, int] = (4, 4)) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", size, level).save(buffer, "PNG")
    return buffer.getvalue()


def image_model(folder: Path, name: str = "shades", **changes) -> None:
    features = np.array([np.full(16, level / 255) for level in range(0, 256, 15)])
    estimator = LogisticRegression().fit(features, features[:, 0] > 0.5)
    content = {
        "estimator": estimator,
        "kind": "image",
        "size": [4, 4],
        "scale": 1 / 255,
        "classes": ["dark", "light"],
    }
    joblib.dump(content | changes, folder / f"{name}.joblib")


def recorded(**params):
    return open_backend("recorded", params)


def test_recorded_answers_come_from_the_columns():
    backend = recorded(label_column="guess", confidence_column="sure", cost_column="price")
    answers = predict_all(
        backend,
        [
            Item(data={"guess": "cat", "sure": "0.75", "price": "0.002"}),
            Item(data={"guess": "", "sure": "0.75", "price": "free"}),
            Item(data={}),
        ],
    )
    assert [answer.value for answer in answers] == ["cat", None, None]
    assert answers[1].reason == "no label in the column guess"
    assert [answer.cost for answer in answers] == [Decimal("0.002"), None, None]
    assert make_score(backend.default_score)(answers[0].raw).u == 0.25
    assert make_score(backend.default_score)(answers[2].raw).u == 1


def test_recorded_uncertainty_may_be_given_instead():
    backend = recorded(label_column="guess", uncertainty_column="doubt")
    answer = predict_all(backend, [Item(data={"guess": "cat", "doubt": "0.125"})])[0]
    assert make_score("recorded")(answer.raw).u == 0.125


def test_another_column_is_another_fingerprint():
    assert recorded(label_column="a").fingerprint() == recorded(label_column="a").fingerprint()
    assert recorded(label_column="a").fingerprint() != recorded(label_column="b").fingerprint()


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({}, "label_column"),
        ({"label_column": 5}, "label_column"),
        ({"label_column": "a", "confidence_column": "b", "uncertainty_column": "c"}, "uncertainty_column"),
        ({"label_column": "a", "lable": "b"}, "lable"),
    ],
)
def test_recorded_refuses_params_by_name(params, where):
    with pytest.raises(InputError) as caught:
        open_backend("recorded", params)
    assert caught.value.where == where


def test_sklearn_reads_grey_levels(models):
    image_model(models)
    items = make_image_items(make_project(), [grey_png(10), grey_png(240), grey_png(240, (40, 40))])
    answers = predict_all(open_backend("sklearn", {"model": "shades"}), items)
    assert [answer.value for answer in answers] == ["dark", "light", "light"]
    assert answers[1].raw == answers[2].raw
    score = make_score("max_softmax")(answers[0].raw)
    assert score.usable
    assert 0 < score.u < 0.5


def test_sklearn_reads_texts(models):
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    pipeline.fit(["good fine", "bad poor", "fine good", "poor bad"], [1, 0, 1, 0])
    joblib.dump({"estimator": pipeline, "kind": "text", "classes": ["no", "yes"]}, models / "mood.joblib")
    items = make_items(make_project(), ["very good", "very bad"])
    backend = open_backend("sklearn", {"model": "mood"})
    assert [answer.value for answer in predict_all(backend, items)] == ["yes", "no"]


def test_other_items_beside_it_do_not_change_an_answer(models):
    image_model(models)
    items = make_image_items(make_project(), [grey_png(level) for level in range(0, 250, 3)])
    backend = open_backend("sklearn", {"model": "shades"})
    together = predict_all(backend, items)
    assert together == [predict_all(backend, [item])[0] for item in items]
    assert together == predict_all(backend, items[::-1])[::-1]


def test_an_item_that_the_model_cannot_read_has_a_reason_and_the_others_an_answer(models):
    image_model(models)
    project = make_project()
    items = [*make_items(project, 1), *make_image_items(project, [grey_png(10)])]
    text, image = predict_all(open_backend("sklearn", {"model": "shades"}), items)
    assert text.value is None
    assert "the item is text" in text.reason
    assert image.value == "dark"


def test_the_fingerprint_follows_the_file(models):
    image_model(models)
    first = open_backend("sklearn", {"model": "shades"}).fingerprint()
    image_model(models, name="copy")
    assert open_backend("sklearn", {"model": "copy"}).fingerprint() == first
    image_model(models, scale=0.5)
    assert open_backend("sklearn", {"model": "shades"}).fingerprint() != first


@pytest.mark.parametrize(
    "name",
    ["", "..", "../shades", "sub/shades", "/etc/passwd", "shades\0", "shades.joblib/..", "missing", ".x"],
)
def test_only_names_of_files_in_the_folder_are_opened(models, name):
    image_model(models)
    (models / "sub").mkdir()
    image_model(models / "sub")
    image_model(models.parent)
    with pytest.raises(InputError) as caught:
        open_backend("sklearn", {"model": name})
    assert caught.value.where == "model"
    assert available_models() == ["shades"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sound"}, "kind"),
        ({"classes": []}, "classes"),
        ({"size": 8}, "size"),
        ({"scale": "big"}, "scale"),
        ({"estimator": object()}, "estimator"),
        ({"classes": ["a", "b", "c"]}, "one probability for each"),
    ],
)
def test_a_model_file_that_is_not_as_it_should_be_is_refused_in_words(models, changes, words):
    image_model(models, **changes)
    items = make_image_items(make_project(), [grey_png(10)])
    with pytest.raises(BackendError, match=words) as caught:
        predict_all(open_backend("sklearn", {"model": "shades"}), items)
    assert caught.value.permanent


def test_a_file_that_is_no_model_is_refused_in_words(models):
    (models / "junk.joblib").write_bytes(b"not a model")
    items = make_items(make_project(), 1)
    with pytest.raises(BackendError, match="cannot be loaded"):
        predict_all(open_backend("sklearn", {"model": "junk"}), items)


def test_recorded_probabilities_samples_and_usage_come_from_their_columns():
    backend = recorded(
        label_column="guess",
        probabilities_column="p",
        token_logprobs_column="l",
        samples_column="s",
        verbalized_column="v",
        tokens_in_column="in",
        tokens_out_column="out",
        seconds_column="t",
        finish_reason_column="f",
    )
    cells = {"guess": "cat", "p": "cat: 0.7; dog: 0.3", "l": "-0.1; -0.2", "s": "cat; ; dog", "v": "80%; 0.9"}
    usage = {"in": "120", "out": "7", "t": "0.25", "f": " STOP "}
    answer = predict_all(backend, [Item(data=cells | usage)])[0]
    assert answer.raw == {
        "probabilities": {"cat": 0.7, "dog": 0.3},
        "token_logprobs": [-0.1, -0.2],
        "samples": ["cat", "", "dog"],
        "verbalized": ["80%", "0.9"],
    }
    assert (answer.tokens_in, answer.tokens_out, answer.latency_ms, answer.finish_reason) == (
        120,
        7,
        250,
        "stop",
    )
    assert backend.usage == {"tokens_in", "tokens_out", "seconds"}
    assert backend.hidden_columns() == set(cells) | set(usage)
    json_cells = {"guess": "cat", "p": '{"cat": 0.7, "dog": 0.3}', "l": "[-0.1, -0.2]"}
    json_cells |= {"s": '["cat", null, "dog"]', "v": '["80%", 0.9]'}
    again = predict_all(backend, [Item(data=json_cells)])[0]
    assert again.raw == answer.raw | {"samples": ["cat", None, "dog"]}
    assert (again.tokens_in, again.latency_ms) == (None, None)


def texts(value):
    """Every text within a JSON value."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "x",
        "{",
        "[1",
        "NaN",
        "[NaN, 1e999]",
        '"\\u0000"',
        '["\\ud800"]',
        "[" * 9_999,
        "[" * 400 + "]" * 400,
    ],
)
def test_a_cell_that_cannot_be_read_gives_a_reason_and_can_be_stored(cell):
    columns = ("probabilities", "token_probabilities", "token_logprobs", "samples", "verbalized")
    backend = recorded(label_column="guess", **{f"{name}_column": "c" for name in columns})
    project = make_project()
    item = make_items(project, 1)[0]
    item.data = {"guess": "cat", "c": cell}
    answer = predict_all(backend, [item])[0]
    # What PostgreSQL refuses in JSON: NaN, infinity, NUL, and halves of surrogate pairs.
    json.dumps(answer.raw, allow_nan=False)
    assert "\0" not in "".join(texts(answer.raw))
    "".join(texts(answer.raw)).encode()
    for name in ("max_softmax", "label_probability", "logits", "verbalized", "ensemble"):
        result = make_score(name)(answer.raw | {"label": "cat"})
        assert result.u == 1.0
        assert result.reason or name == "ensemble"  # any two texts are samples, and these are no cats


@pytest.mark.parametrize(
    ("columns", "score"),
    [
        ({}, "recorded"),
        ({"samples_column": "s", "token_logprobs_column": "l"}, "logits"),
        ({"samples_column": "s", "confidence_column": "c"}, "recorded"),
        ({"probabilities_column": "p", "verbalized_column": "v"}, "label_probability"),
        ({"verbalized_column": "v"}, "verbalized"),
    ],
)
def test_the_score_of_recorded_answers_follows_their_columns(columns, score):
    assert recorded(label_column="guess", **columns).default_score == score


def test_columns_that_are_not_named_leave_the_fingerprint_as_it_was():
    # SHA-256 of a source that was saved before these columns could be named.
    parts = {"backend": "recorded", "label": "a", "confidence": "b", "uncertainty": "", "cost": ""}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    plain = recorded(label_column="a", confidence_column="b").fingerprint()
    assert plain == hashlib.sha256(text.encode()).hexdigest()
    assert recorded(label_column="a", confidence_column="b", samples_column="s").fingerprint() != plain


def test_sklearn_tells_how_long_an_answer_took(models):
    image_model(models)
    items = make_image_items(make_project(), [grey_png(10), grey_png(240)])
    first, second = predict_all(open_backend("sklearn", {"model": "shades"}), items)
    assert first.latency_ms == second.latency_ms > 0
