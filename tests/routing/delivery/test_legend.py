"""What a delivery says of its columns: the same on its data card and in the documentation."""

import re
from pathlib import Path
from typing import Any

import pytest

from routing.delivery.deliver import deliver
from routing.delivery.legend import COLUMN_WORDS
from routing.labels.page import ADDED
from routing.models import Delivery
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import files_of, make_world, rows_of
from tests.routing.by_people.people import answer, asked, delivered

ROOT = Path(__file__).parents[3]
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def told_in(text: str) -> dict[tuple[str, ...], str]:
    """Of the first table of columns in Markdown: names and meaning, without links."""
    table = text.partition("| column | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ", 1) for line in table.splitlines()]
    return {tuple(re.findall(r"`(\w+)`", names)): LINK.sub(r"\1", words) for names, words in cells}


def test_the_documentation_says_the_same_of_every_column() -> None:
    assert told_in((ROOT / "docs/deliveries.md").read_text(encoding="utf-8")) == COLUMN_WORDS
    assert tuple(name for names in COLUMN_WORDS for name in names) == ADDED


@pytest.mark.costly
@pytest.mark.django_db
class TestCards:
    def test_of_people_alone_it_names_what_is_empty_and_what_is_not_there(self, client_of: Any) -> None:
        project = make_project()
        annotator = add_member(project, "annotator")
        make_items(project, 3, data={"label": "theirs"})
        project.columns = ["label"]
        project.save()
        run = asked(project)
        answer(project, annotator)
        files = files_of(delivered(client_of(project.created_by), run))
        card = files["README.md"].decode()
        told = told_in(card)
        assert ("source",) in told
        assert ("hypac_label", "label_name") in told
        assert not {("asked",), ("p_i",), ("uncertainty",), ("certificate_id",), ("taken_in",)} & set(told)
        assert (
            "Empty in every row, as this run has no model and no draw: `uncertainty`, `p_i`, `asked`, "
            "`certificate_id`, `expert_saw`. People were asked about every item of the run." in card
        )
        assert "Not in these files: what each of several people answered" in card
        assert "Every row has a label." in card
        assert "0 rows" not in card
        header, *rows = files["labels.csv"].decode().splitlines()
        place = header.split(",").index("asked")
        assert [row.split(",")[place] for row in rows] == ["", "", ""]

    def test_of_models_it_names_the_draw(self) -> None:
        world = make_world(60)
        run = world.complete(m=20)
        deliver(run=run, user=world.manager)
        world.do("deliver_run")
        files = files_of(Delivery.objects.get(run=run))
        told = told_in(files["README.md"].decode())
        assert {("asked",), ("p_i",), ("certificate_id",)} <= set(told)
        assert ("taken_in",) not in told
        assert {row.asked for row in rows_of(run)} == {True, False}
