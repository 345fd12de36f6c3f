"""The notebook and the examples of docs/client.md run as they stand, in their order."""

import ast
import gzip
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hypac_client import Client, Project
from tests.client.conftest import LiveSite
from tests.services.test_embedded import ROOT

NOTEBOOK = ROOT / "docs/notebooks/quickstart.ipynb"
PAGE = ROOT / "docs/client.md"
SITE_OF_THE_PAGE = "http://localhost:8000"


def run_code(code: str, names: dict[str, Any], where: str) -> None:
    exec(compile(ast.parse(code, filename=where), where, "exec"), names)  # noqa: S102 - our own documents


def test_the_notebook_runs_from_top_to_bottom(
    live: LiveSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", live.url)
    monkeypatch.setenv("HYPAC_TOKEN", live.tokens["ada"])
    monkeypatch.setenv("HYPAC_ANNOTATOR", "bo")
    monkeypatch.setenv("HYPAC_ANNOTATOR_TOKEN", live.tokens["bo"])
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            run_code("".join(cell["source"]), names, f"{NOTEBOOK.name}: {cell['id']}")
    assert names["labels"]["label"].notna().all()
    assert len(names["labels"]) == 400
    assert names["labels"]["correct"].mean() > 0.8
    assert "of the labels are wrong; certified: at most 5%" in capsys.readouterr().out


def test_the_notebook_shows_outcomes_and_no_place() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell["outputs"]) for cell in code) > 8
    assert not [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]
    shown = json.dumps([cell["outputs"] for cell in code])
    assert not re.search(r"/(tmp|home|root)/|127\.0\.0\.1|localhost|Token |ipykernel", shown)


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


@contextmanager
def somebody_labels(client: Client, slug: str) -> Iterator[None]:
    """As long as the block runs, everything that waits is labelled."""
    over = threading.Event()

    def label() -> None:
        for invitation in list(client.invitations()):
            invitation.accept()
        project = client.projects.get(slug)
        while not over.wait(0.1):
            for task in project.queue():
                task.submit("good" if "good" in task.text else "bad")

    thread = threading.Thread(target=label, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(120)


def test_the_examples_of_the_page_run_in_their_order(
    live: LiveSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYPAC_TOKEN", live.tokens["ada"])
    monkeypatch.setenv("WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    chance = random.Random(1)
    reviews = [(f"n-{n}", chance.choice(["good", "bad"])) for n in range(300)]
    lines = [f"{name},It was {word}: {number}" for number, (name, word) in enumerate(reviews)]
    Path("reviews.csv").write_text("id,text\n" + "\n".join(lines) + "\n")

    with gzip.open("answers.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"external_id": name, "label": word}) + "\n" for name, word in reviews)

    names: dict[str, Any] = {"__name__": "__main__"}
    with live.client() as client, live.client("bo") as annotator:
        for number, block in enumerate(blocks(), start=1):
            code = block.replace(SITE_OF_THE_PAGE, live.url)
            if '"reference": "expert"' in code:
                continue  # people label in two rounds there: tests/client/test_expert_run.py goes that way
            if "start_run" in code:
                _the_rest_of_the_answers(names, reviews)
                with somebody_labels(annotator, "reviews"):
                    run_code(code, names, f"{PAGE.name}, example {number}")
            else:
                run_code(code, names, f"{PAGE.name}, example {number}")
            # What the page's first example closed: the others go on with it as if it were open.
            names["client"] = client
    assert names["run"].state == "complete"
    assert len(names["table"]) == len(reviews) + 2
    assert (tmp_path / "reviews-labelled" / "certificate.json").exists()
    assert names["receive"](b"{}", {}) == 400


def _the_rest_of_the_answers(names: dict[str, Any], reviews: list[tuple[str, str]]) -> None:
    """The page sends one; a run needs more of them."""
    project: Project = names["project"]
    answers = [
        {"external_id": name, "label": word, "confidence": 0.9 - number / 1_000}
        for number, (name, word) in enumerate(reviews)
    ]
    next(iter(project.sources)).upload_predictions(answers).wait(timeout=300)
