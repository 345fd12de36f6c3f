"""schemathesis asks a running server all that the API's own schema allows, and much that it does not.

HYPAC_TEST_FUZZ says how many requests for each operation, beside those at the edges of its schema and those
that follow what an answer has named: some 10,000 in all by `make fuzz-api`, on SQLite and on PostgreSQL each.
Without it some hundreds are made.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from annotation.people.tokens import make_token
from testbed.factories import add_member, make_items, make_project
from tests.pages.test_access import arguments, world  # noqa: F401 - fixtures
from tests.support import child_environment

HOOKS = "tests.services.api_fuzz_hooks"


@pytest.mark.django_db(transaction=True)
def test_the_api_does_what_its_schema_says(
    live_server,
    world,  # noqa: F811
    arguments,  # noqa: F811
    settings,
    tmp_path,
    caplog,
    capsys,
) -> None:
    # Refusals are what most requests are there for; errors of the server are shown with where they came from.
    caplog.set_level(logging.ERROR, "django.request")
    settings.HYPAC_API_RATES = dict.fromkeys(settings.HYPAC_API_RATES, "")
    owner = world.project.created_by
    spare = make_project(owner)
    make_items(spare, 5)
    add_member(spare, "annotator")
    _, secret = make_token(user=owner, name="fuzzing")
    per_operation = os.environ.get("HYPAC_TEST_FUZZ", "")
    phases = "examples,coverage,fuzzing,stateful" if per_operation else "examples,fuzzing"
    counts = tmp_path / "counts.json"
    report = Path(os.environ.get("HYPAC_TEST_FUZZ_REPORT", tmp_path / "report"))
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run"),
        f"{live_server.url}/api/v1/schema/?format=json",
        *("--header", f"Authorization: Token {secret}"),
        # Rules of the work refuse much that the schema allows, such as a plan for which there is no item.
        *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
        *("--max-examples", per_operation or "3", "--seed", "7"),
        # ast.parse in two threads now and then ends the run: CPython 3.11 counts the depth of both together
        # ("AST constructor recursion depth mismatch").
        *("--workers", "1"),
        *("--phases", phases, "--continue-on-failure", "--request-timeout", "60"),
        *("--suppress-health-check", "all", "--report", "json", "--report-json-path", f"{report}.json"),
        *os.environ.get("HYPAC_TEST_FUZZ_ARGS", "").split(),
    ]
    environment = child_environment(
        SCHEMATHESIS_HOOKS=HOOKS,
        FUZZ_IDS=json.dumps(arguments),
        FUZZ_SPARE=spare.slug,
        FUZZ_COUNTS=str(counts),
    )
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=4 * 3600)
    whole = report.with_suffix(".txt")
    whole.write_text(done.stdout + done.stderr)
    told = json.loads(counts.read_text())
    if per_operation:
        with capsys.disabled():
            print(f"\n{connection.vendor}: {_sum(told['sent'])}")
    assert told["errors"] == []
    assert sum(told["sent"][phase] for phase in phases.split(",") if phase in told["sent"]) > 100
    assert done.returncode == 0, f"{_failures(done.stdout)}{done.stderr[-2_000:]}\nAll of it: {whole}"


def _sum(sent: dict[str, int]) -> str:
    """How many requests of each phase, and answers of each kind."""
    kinds = {name: count for name, count in sent.items() if name.endswith("xx")}
    told = [f"{count:,} {name}" for name, count in sorted(sent.items())]
    return f"{sum(kinds.values()):,} requests: {', '.join(told)}"


def _failures(told: str) -> str:
    """What failed, without the warnings after it, which are longer than what a log of many tests shows."""
    begins = [told.find(f" {title} ") for title in ("ERRORS", "FAILURES")]
    begin = min((place for place in begins if place >= 0), default=max(0, len(told) - 4_000))
    end = told.find(" WARNINGS ", begin)
    return told[begin : end if end >= 0 else None][:6_000]
