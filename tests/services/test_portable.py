"""A project carried between installations that share nothing: from SQLite to PostgreSQL, and back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotation.projects.portable import compare
from tests.services.conftest import ROOT
from tests.template_database import copy_sqlite
from tests.verify.reports import found_in

pytestmark = pytest.mark.slow

BEGUN = """
import django; django.setup()
from routing.delivery.deliver import deliver
from testbed.worlds import make_world
from tests.annotation.projects.portable_world import everything
everything(size=90)
world = make_world(60)
world.calibrating(m=40)
world.label(limit=10)
print(world.project.slug)
"""
# Whoever owns what came in goes on with the run that is under way, and delivers.
GOES_ON = """
import sys
from pathlib import Path
import django; django.setup()
from django.db import transaction
from annotation.models import Project, User
from routing.delivery.deliver import deliver
from routing.models import Delivery
from testbed.worlds import World, files_of
project, folder = Project.objects.get(slug=sys.argv[1]), Path(sys.argv[2])
owner = User.objects.get(username="owner-here")
run = project.runs.get()
if run.state == "calibrating":
    names = project.items.values_list("external_id", flat=True)
    world = World(project, owner, [owner], dict.fromkeys(names, "cat"))
    with transaction.atomic():
        world.finish()
        world.complete_from(run)
deliver(run=run, user=owner)
World(project, owner, [], {}).do("deliver_run")
for name, content in files_of(Delivery.objects.filter(run=run).latest("number")).items():
    (folder / name).write_bytes(content)
"""


class Installation:
    """One of its own: its folder, its database, its keys."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | {
            "HYPAC_VAR": str(folder),
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "DJANGO_SECRET_KEY": f"{folder.name}-" + "0123456789" * 6,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "clients" / "verify")]),
        }
        if url:
            folder.mkdir()
            self.env["DATABASE_URL"] = url
        else:
            copy_sqlite(folder / "hypac.sqlite3")

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT, env=self.env, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def manage(self, *arguments: str) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.run("manage.py", *arguments, "--json"))
        return told


def test_from_sqlite_to_postgresql_and_back(tmp_path: Path, migrated_url: str) -> None:
    here = Installation(tmp_path / "here")
    there = Installation(tmp_path / "there", migrated_url)
    third = Installation(tmp_path / "third")
    under_way = here.run("-c", BEGUN).strip()
    for installation in (there, third):
        installation.run("manage.py", "person", "owner-here")
    for slug in ("project-1", under_way):
        first, second, last = (tmp_path / f"{slug}-{name}.zip" for name in ("first", "second", "last"))
        here.manage("project", "export", slug, "--to", str(first))
        told = there.manage("project", "import", str(first), "--owner", "owner-here")
        assert told["slug"] == slug
        there.manage("project", "export", slug, "--to", str(second))
        compare(first, second, dict(told["made"]))  # type: ignore[call-overload]
        back = third.manage("project", "import", str(second), "--owner", "owner-here", "--slug", "again")
        third.manage("project", "export", "again", "--to", str(last))
        compare(second, last, dict(back["made"]))  # type: ignore[call-overload]
        for installation, name in ((there, slug), (third, "again")):
            folder = tmp_path / f"{name}-of-{slug}"
            folder.mkdir()
            installation.run("-c", GOES_ON, name, str(folder))
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            found = found_in(tmp_path / "checked", files)
            assert (found.code, found.faults) == (0, "")
        third = Installation(tmp_path / f"next-{slug}")
        third.run("manage.py", "person", "owner-here")
