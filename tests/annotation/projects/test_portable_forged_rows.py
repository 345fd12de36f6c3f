"""Rows that fit their columns, and that pages, the ledger or whoever unpacks a delivery could not bear."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from annotation import failures
from annotation.errors import InputError
from annotation.models import Job, Project
from hypac_site.portable import archive
from hypac_site.portable.exporting import export_project
from hypac_site.portable.importing import import_project
from hypac_site.portable.manifest import PEOPLE
from hypac_site.portable.sentences import COLUMNS, SENTENCES
from hypac_site.portable.tables import cleaned
from routing.delivery import downloads
from testbed.factories import make_project
from tests.annotation.projects.portable import Lines, carried, forged
from tests.annotation.projects.test_portable_hostile import _made, good, refused  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

ITEM, JOB, RUN = "tables/annotation.item.jsonl", "tables/annotation.job.jsonl", "tables/routing.run.jsonl"
LEDGER, DRAW = "tables/routing.ledgerentry.jsonl", "tables/routing.draw.jsonl"
RUN_SOURCE = "tables/routing.runsource.jsonl"
LONG = {"template": "%(name)99999999s", "named": {"name": "x"}}


def relinked(all_: Lines, change: Callable[[dict[str, Any]], None]) -> None:
    """The first entry changed, and its row left as it was."""
    change(all_[LEDGER][0])


ROWS: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "a list for an object": (lambda all_: all_[ITEM][0].update(data=[1]), "data: it is no object"),
    "a text for an object": (lambda all_: all_[JOB][0].update(params="x"), "params: it is no object"),
    "an import of nothing": (
        lambda all_: next(job for job in all_[JOB] if job["kind"] == "import").update(params={}),
        "an import that names no file",
    ),
    "an object for a list": (lambda all_: all_[ITEM][0].update(fields={}), "fields: it is no list"),
    "a ledger that was emptied": (lambda all_: all_[LEDGER].clear(), "ledger lacks an entry: run 1"),
    "a ledger without its end": (lambda all_: all_[LEDGER].pop(), "ledger lacks an entry: run"),
    "an entry of another run": (
        lambda all_: relinked(all_, lambda row: row.update(kind="final_audit")), "another entry's"
    ),
    "an entry that is no object": (
        lambda all_: relinked(all_, lambda row: row.update(document=[])),
        "it has no object where one has to be",
    ),
    "an error that cannot be said": (
        lambda all_: all_[JOB][0].update(
            error="x", error_code="out_of_memory", error_params={"most": "many"}
        ),
        "one of its sentences cannot be said",
    ),
    "words without their values": (
        lambda all_: all_[JOB][0].update(stage_params={"template": "x"}), "sentences cannot be said"
    ),
    "words that would fill the memory": (
        lambda all_: all_[JOB][0].update(stage_params=LONG), "a place that no sentence has"
    ),
    "the same inside of an error": (
        lambda all_: all_[JOB][0].update(error="x", error_params={"said": [LONG]}),
        "a place that no sentence has",
    ),
    "a name for a terminal": (
        lambda all_: all_["tables/routing.source.jsonl"][0].update(name="fast\x1b[2J"), "not shown"
    ),
    "a position that pages would count up to": (
        lambda all_: all_[RUN_SOURCE][-1].update(position=2**31 - 1),
        "position: |sources of run 1 have gaps between their positions",
    ),
    "positions with a gap": (
        lambda all_: all_[RUN_SOURCE][-1].update(position=9),
        "sources of run 1 have gaps between their positions",
    ),
    "a reason that is none": (
        lambda all_: all_[RUN][0].update(invalid_reasons=["x"]), "invalid_reasons: it has no object"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_what_no_export_would_write(good: Path, tmp_path: Path, case: str) -> None:  # noqa: F811
    change, words = ROWS[case]
    refused(forged(good, tmp_path / "p.zip", change), words)


@pytest.mark.parametrize("sign", ["\x1b[2J", "\r\n", "\x9b", "\u202e"])
def test_names_of_people_say_nothing_to_a_terminal(good: Path, tmp_path: Path, sign: str) -> None:  # noqa: F811
    def change(all_: Lines) -> None:
        all_[PEOPLE].append({"number": 10**9, "name": f"ann{sign}", "erased_at": None})

    refused(forged(good, tmp_path / "forged.zip", change), "control characters")


def test_a_line_is_no_longer_than_memory_bears() -> None:
    assert archive.LONGEST_LINE <= 64 * 2**20


def test_a_short_name_that_differs_in_case_alone_is_taken(good: Path) -> None:  # noqa: F811
    Project.objects.filter(pk=make_project().pk).update(slug="Taken")
    with pytest.raises(InputError, match="There is a project 'taken' here already"):
        import_project(path=good, owner="owner-here", slug="taken")


def test_what_a_job_said_of_the_inside_of_its_server_stays_there(tmp_path: Path) -> None:
    project = make_project()
    secret = failures.UNEXPECTED.error(error="/srv/secret/path and db-host-7")
    told = failures.WORKERS_DIED.error(attempts=3)
    for number, error in enumerate((secret, told)):
        columns = failures.columns_of(error)
        Job.objects.create(
            project=project, kind="measure", state="failed", unique_key=f"k{number}", **columns
        )
    path = tmp_path / "p.zip"
    export_project(slug=project.slug, target=path)
    there = carried(project, tmp_path)
    first, second = there.jobs.order_by("pk")
    assert first.error_code == "stayed_behind"
    assert "did not travel" in first.error_in_words
    assert "secret" not in str(first.__dict__)
    assert second.error_in_words == str(told)
    row = {"claim_token": "t", "error_code": "stayed_behind", "error": first.error, "error_params": {}}
    assert cleaned(Job, row)["error"] == first.error


def test_an_archive_has_no_name_that_leads_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(downloads, "open_file", opened.append)
    files = [SimpleNamespace(name="../../evil.sh", file=SimpleNamespace(sha256="a" * 64))]
    delivery = SimpleNamespace(files=SimpleNamespace(select_related=lambda _name: files))
    with pytest.raises(InputError, match="No file of a delivery has such a name"):
        downloads.archive_response(None, delivery)  # type: ignore[arg-type]
    assert not opened


def test_every_sentence_that_is_said_is_looked_at() -> None:
    assert SENTENCES.keys() == COLUMNS.keys()
