"""The annotators of the demonstration with an expert: how often they are wrong, and whom they copy."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from annotation.imports.columns import ColumnMapping
from routing.demo import experts
from routing.demo.scene import Pool

SIZE, SLOWS_ERROR = 2_000, 10
TRUTH = {f"key-{place:04}": str(place % 10) for place in range(SIZE)}
SLOW = {
    key: str((int(digit) + 1) % 10) if place % SLOWS_ERROR == 0 else digit
    for place, (key, digit) in enumerate(TRUTH.items())
}


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps(TRUTH))
    pool = Pool(
        file=tmp_path / "none.zip", media_type="", columns=ColumnMapping(), truth_file=truth, size=SIZE
    )

    def by(slow: dict[str, str], folder: str = "demo") -> dict[str, str]:
        monkeypatch.setattr(experts, "slow_answers", lambda *_: slow)
        found: dict[str, str] = json.loads(experts.annotators_truth(tmp_path / folder, pool).read_text())
        return found

    return by


def wrong(said: dict[str, str]) -> list[str]:
    return [key for key in TRUTH if said[key] != TRUTH[key]]


def test_they_err_on_as_many_items_as_is_said_and_some_of_it_like_the_slow_model(said) -> None:
    found = said(SLOW)
    assert found.keys() == TRUTH.keys()
    # A mistake of their own may meet one that they copy, so that there are a few less.
    assert 0.9 * experts.ERROR * SIZE <= len(wrong(found)) <= experts.ERROR * SIZE
    copied = [key for key in wrong(found) if found[key] == SLOW[key]]
    assert len(copied) == pytest.approx(experts.COPIED * experts.ERROR * SIZE, abs=3)
    assert {found[key] for key in wrong(found)} <= set(experts.CLASSES)


def test_where_the_slow_model_errs_too_rarely_the_mistakes_are_their_own(said) -> None:
    found = said(TRUTH)
    assert len(wrong(found)) == round(experts.ERROR * SIZE)


def test_they_say_the_same_each_time(said) -> None:
    first = said(SLOW)
    assert said(SLOW, "again") == first
    assert said(TRUTH) == first  # made once, whatever the model is later
    assert said(TRUTH, "third") != first
