"""Eight processes on one SQLite file: nothing doubled, nothing lost, no "database is locked"."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_processes_that_label_at_once_on_sqlite(tmp_path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        "HYPAC_VAR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
    }

    def python(*arguments: str) -> str:
        outcome = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    python("manage.py", "migrate", "--no-input", "--verbosity=0")
    found = json.loads(python("-m", "tests.annotation.hammer", "processes", "80", "8", "1").splitlines()[-1])
    assert found["errors"] == []
    assert found["states"] == {"done": 80}
    assert found["labelled_items"] == found["first_labels"] == 80
    assert found["people"] > 1
    # What the workers are there for did happen.
    assert found["seen"]["expired"] > 0
    assert found["seen"]["corrected"] > 0
