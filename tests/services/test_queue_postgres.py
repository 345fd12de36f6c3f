"""The queue on PostgreSQL under real concurrency: threads, each with its own connection."""

import json
import subprocess
import sys

from tests.services.conftest import ROOT, Site


def test_workers_that_label_at_once(postgres_site: Site) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.annotation.hammer", "threads", "120", "8", "2"],
        cwd=ROOT,
        env=postgres_site.environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout.splitlines()[-1])
    assert found["errors"] == []
    assert found["states"] == {"done": 120}
    assert found["labelled_items"] == found["first_labels"] == 120
    assert found["people"] > 1
    assert found["seen"]["expired"] > 0


def test_single_looks_into_the_queue_are_not_compiled(postgres_site: Site) -> None:
    show = (
        "from django.db import connection as c; k = c.cursor(); k.execute('show jit'); print(k.fetchone()[0])"
    )
    assert postgres_site.manage("shell", "--no-imports", "-c", show).split()[-1] == "off"
