"""Losses and embedders that are named by the path of a Python object."""

from __future__ import annotations

import math
import sys

import pytest

from routing.core.losses import LossError, imported_paths, losses_of, make_loss
from tests.core import own_losses

OWN = "tests.core.own_losses"

# --- Embeddings ---------------------------------------------------------------------------------------------


def test_cosine_distances_by_hand() -> None:
    loss = make_loss("cosine_distance", {"embedder": f"{OWN}:embed"})
    assert loss("ab", "ba") == pytest.approx(0)
    assert loss("a", "b") == 1
    assert loss("a", "ab") == pytest.approx(1 - 1 / math.sqrt(2))
    assert loss("aab", "abb") == pytest.approx(1 - 4 / 5)
    assert loss("zzz", "zzz") == 0
    assert loss("zzz", "a") == loss("a", "zzz") == loss("zzz", "yyy") == 1


def test_opposite_vectors_of_any_size_cost_the_bound() -> None:
    loss = make_loss("cosine_distance", {"embedder": f"{OWN}:embed_minus"})
    assert losses_of(loss, ["xx", "x"], ["xxx", "xxx"]).tolist() == [2, 0]


def test_every_text_is_embedded_once_and_in_batches() -> None:
    loss = make_loss("cosine_distance", {"embedder": f"{OWN}:embed"})
    own_losses.EMBEDDED.clear()
    labels = ["a" * (k % 400 + 1) for k in range(1000)]
    values = losses_of(loss, labels, ["b"] * 1000)
    assert values.tolist() == [1.0] * 1000
    assert losses_of(loss, labels[:10], ["b"] * 10).tolist() == [1.0] * 10
    texts = [text for batch in own_losses.EMBEDDED for text in batch]
    assert len(texts) == len(set(texts)) <= 401
    assert max(len(batch) for batch in own_losses.EMBEDDED) <= 256


def test_only_so_many_vectors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.core.losses import cosine_distance

    monkeypatch.setattr(cosine_distance, "KEPT", 2)
    loss = cosine_distance.CosineDistance(own_losses.embed, "embed")
    own_losses.EMBEDDED.clear()
    for label in ["a", "b", "aa", "a"]:
        assert loss(label, "c") == 1
    assert [text for batch in own_losses.EMBEDDED for text in batch].count("a") == 2


@pytest.mark.parametrize(
    ("embedder", "words"),
    [
        ("embed_flat", "gave an array of shape (2,) for 2 texts"),
        ("embed_nan", "gave NaN or infinity for the text 'a'"),
        ("embed_fails", "failed: RuntimeError: no memory left"),
    ],
)
def test_an_embedder_that_does_not_do_its_work_is_named(embedder: str, words: str) -> None:
    loss = make_loss("cosine_distance", {"embedder": f"{OWN}:{embedder}"})
    with pytest.raises(LossError) as failed:
        loss("a", "b")
    assert words in str(failed.value)
    assert embedder in str(failed.value)


def test_vectors_of_different_lengths_are_an_error() -> None:
    loss = make_loss("cosine_distance", {"embedder": f"{OWN}:embed_by_length"})
    assert loss("a", "b") == pytest.approx(0)
    with pytest.raises(LossError, match="different lengths"):
        loss("a", "long")


# --- One's own ----------------------------------------------------------------------------------------------


def test_a_loss_of_ones_own_by_its_path() -> None:
    loss = make_loss(f"{OWN}:Distance", {"largest": 3})
    assert (loss.name, loss.bound, loss.binary) == (f"{OWN}:Distance", 3, False)
    assert losses_of(loss, ["1", "2", "9"], ["1", "4", "1"]).tolist() == [0, 2, 3]
    assert make_loss(f"{OWN}:apart").bound == 2


def test_a_batch_of_ones_own_is_used_and_checked() -> None:
    loss = make_loss(f"{OWN}:BatchDistance", {"largest": 6})  # of this test alone: its calls are counted
    assert losses_of(loss, ["1", "2"], ["1", "4"]).tolist() == [0, 2]
    assert loss.function.calls == 1  # type: ignore[attr-defined]
    with pytest.raises(LossError, match=r"row 1: .* gave 5.0: it declares values from 0 to 4"):
        losses_of(make_loss(f"{OWN}:BatchDistance", {"off_by": 1}), ["1", "9"], ["1", "1"])
    with pytest.raises(LossError, match=r"gave \(1,\) values for 2 pairs"):
        losses_of(make_loss(f"{OWN}:BatchDistance", {"short_by": 1}), ["1", "9"], ["1", "1"])
    with pytest.raises(LossError, match="failed: ValueError"):
        losses_of(loss, ["x"], ["1"])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"value": -0.1},
            "gave -0.1 on the label 'truth' and the prediction 'guess': it declares values from",
        ),
        ({"value": 1.1}, "gave 1.1"),
        ({"value": "nan"}, "gave nan"),
        ({"value": 0.5, "binary": True}, "it declares to be binary, 0 or 1 only"),
        ({"value": "high"}, "failed on the label 'truth'"),
        ({"value": None}, "failed on the label 'truth'"),
    ],
)
def test_a_value_outside_what_is_declared_is_an_error(params: dict[str, object], words: str) -> None:
    loss = make_loss(f"{OWN}:Declares", params)
    with pytest.raises(LossError) as failed:
        losses_of(loss, ["truth"], ["guess"])
    assert words in str(failed.value)
    assert str(failed.value).startswith("row 0: ")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("Declares", {"bound": 0}, "must declare 'bound'"),
        ("Declares", {"bound": "1"}, "must declare 'bound'"),
        ("Declares", {"bound": True}, "must declare 'bound'"),
        ("Declares", {"bound": None}, "must declare 'bound'"),
        ("Declares", {"binary": "no"}, "must declare 'binary'"),
        ("Declares", {"binary": True, "bound": 2}, "a binary loss has the bound 1"),
        ("Declares", {"size": 2}, "cannot be made with the parameters ['size']: TypeError"),
        ("apart", {"size": 2}, "is an object and takes no parameter 'size'"),
        ("NoCall", {}, "cannot be called with a label and a prediction"),
        ("missing", {}, "has no 'missing'"),
    ],
)
def test_a_loss_that_does_not_declare_itself_is_refused(
    name: str, params: dict[str, object], words: str
) -> None:
    with pytest.raises(LossError) as refused:
        make_loss(f"{OWN}:{name}", params)
    assert words in str(refused.value)


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(LossError, match=r"the module 'no_such.module' cannot be imported"):
        make_loss("no_such.module:loss")


def test_nothing_is_imported_where_that_is_not_allowed() -> None:
    assert imported_paths("numeric", {"absolute": 1}) == ()
    assert imported_paths("numeric", {"embedder": "this:d"}) == ()
    assert imported_paths("this:d") == ("this:d",)
    assert imported_paths("cosine_distance", {"embedder": "this:d"}) == ("this:d",)
    for name, params in (("this:d", {}), ("cosine_distance", {"embedder": "this:d"})):
        with pytest.raises(LossError, match="would run the code of 'this:d', which is not allowed"):
            make_loss(name, params, allow_import=False)
    assert "this" not in sys.modules
    assert make_loss("numeric", allow_import=False).name == "numeric"
