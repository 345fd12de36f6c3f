"""Twenty processes on one SQLite file: nothing doubled, nothing lost, no "database is locked"."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.annotation.hammer import check

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
            timeout=1000,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    python("manage.py", "migrate", "--no-input", "--verbosity=0")
    found = json.loads(python("-m", "tests.annotation.hammer", "processes", "60", "20").splitlines()[-1])
    check(found, asked=90, people=18)
