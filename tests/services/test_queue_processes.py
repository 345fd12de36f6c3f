"""Twenty processes on one SQLite file: nothing doubled, nothing lost, no "database is locked"."""

import json
from pathlib import Path

from tests.annotation.installation import Installation
from tests.annotation.labelling.hammer import check


def test_processes_that_label_at_once_on_sqlite(tmp_path: Path) -> None:
    printed = Installation(tmp_path).finish(
        "-m", "tests.annotation.labelling.hammer", "processes", "60", "20"
    )
    check(json.loads(printed.splitlines()[-1]), asked=90, people=18)
