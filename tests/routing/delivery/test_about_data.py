"""What the data card says for documentation of the data set: what the run knows, and blanks for the rest."""

import pytest
import yaml

from routing.delivery.about_data import BLANK
from testbed.delivered import delivered
from testbed.experts import ExpertWorld
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def rows_of(card: str) -> dict[str, str]:
    """First cell -> second, of the tables about the data set."""
    tables = card.partition("## About this data set")[2]
    cells = [
        line.strip("|").split(" | ")
        for line in tables.splitlines()
        if line.startswith("| ") and not line.startswith("| | |")
    ]
    return {name.strip(): words.strip() for name, words, _ in cells}


def test_it_fills_in_what_the_run_knows_and_leaves_the_rest_blank() -> None:
    world = make_world(100)
    world.project.guidelines = "Look twice | `then` decide."
    world.project.save(update_fields=["guidelines"])
    world.project.sources.filter(position=1).update(name="a | b` c")
    run = world.complete(m=40)
    files = delivered(world, run)
    card = files["README.md"].decode()
    rows = rows_of(card)
    assert "`cat`, `dog`, `emu`" in rows["Task"]
    assert "written guidelines beside every item (5 words)" in rows["Instructions"]
    assert rows["Models that labelled"] == "`a / b' c`, `Model 2`"
    assert "40 of 100 items were drawn at random" in rows["How"]
    assert "At most 0.1 of the labels" in rows["Errors"]
    assert rows["When"].startswith(run.created_at.date().isoformat())
    for name in ("Licence", "Language", "Representativeness of the items", "How to cite it, and whom to ask"):
        assert rows[name] == BLANK
    for one in run.commitments.all():
        assert one.sha256 in card
    # The sentence still comes first, behind the title.
    assert card.splitlines()[2].startswith("At most 10 % of the labels")
    asked_for = card.partition("## About this data set")[2]
    for point in "abcdefgh":
        assert f"(2)({point})" in asked_for or f"({point})" in asked_for


def test_what_is_not_certified_is_said_to_be_so() -> None:
    world = make_world(100)
    run = world.complete(m=40, epsilon="0.001")
    rows = rows_of(delivered(world, run)["README.md"].decode())
    assert rows["Errors"] == "Nothing is certified of how many labels are wrong."


def test_the_header_of_hugging_face_is_yaml_and_says_who_labelled() -> None:
    here = ExpertWorld(240)
    run = here.finish(here.routed(here.start()))
    files = delivered(here.world, run, ("huggingface",))
    header = files["dataset/README.md"].decode().split("---")[1]
    read = yaml.safe_load(header)
    assert set(read["annotations_creators"]) <= {"machine-generated", "expert-generated", "other"}
    assert "expert-generated" in read["annotations_creators"]
    assert read["size_categories"] == ["n<1K"]
    assert read["task_categories"] == ["text-classification"]
