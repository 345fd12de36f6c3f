"""What users of a type checker see of the client."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.test_documents import blocks
from tests.services.test_embedded import ROOT

pytestmark = pytest.mark.costly
SPELT_WRONGLY = (
    'project.data["nme"]',
    'next(project.labels())["anotator"]',
    'run.data["certificate"]["certifed"]',
    'delivery.files[0]["sise"]',
)
SEEN = {
    'project["the_new_field"]': "Any",
    'project.data["archived_at"]': "str | None",
    'run.data["certificate"]["sentence"]': "str",
    'project.plan()["usability"][0]["usable"]': "int",
    'run.refresh().data["number"]': "int",
}


def test_the_page_s_examples_pass_and_a_field_that_is_none_does_not(tmp_path: Path) -> None:
    """One run for all, as a user's own file, by the client's strict settings."""
    code = [*"\n".join(blocks()).splitlines(), *SPELT_WRONGLY, *(f"reveal_type({asked})" for asked in SEEN)]
    file = tmp_path / "examples.py"
    file.write_text("\n".join(code))
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(file)]
    done = subprocess.run(command, cwd=ROOT / "clients/python", capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    wrong = [line for line in told if ": error: " in line]
    assert len(wrong) == len(SPELT_WRONGLY), done.stdout + done.stderr
    assert all("[typeddict-item]" in line for line in wrong)
    shown = [line.partition("Revealed type is ")[2] for line in told if "Revealed type is " in line]
    for (asked, expected), found in zip(SEEN.items(), shown, strict=True):
        assert found == f'"{expected}"', (asked, found)
