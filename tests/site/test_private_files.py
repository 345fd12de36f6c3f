"""Nobody else of the machine reads what the site writes, also where an older version had left it open."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from hypac_site import environment, private_files

pytestmark = [pytest.mark.costly, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
USE = """
import django; django.setup()
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from hypac_site.celery import app
connection.cursor().execute("CREATE TABLE IF NOT EXISTS kept (value)")
default_storage.save("projects/1/file", ContentFile(b"somebody's text"))
app.send_task("annotation.reconcile_jobs")
open("PLACE/of-a-command", "w").close()
for name in os.listdir("VAR"): print(name)
"""


def run(folder: Path, code: str, *, umask: int = 0o022, **variables: str) -> str:
    """As somebody whose shell lets everybody read what they write."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYPAC_", "DJANGO_", "DATABASE_URL"))}
    own = {"HYPAC_VAR": str(folder), "DJANGO_SETTINGS_MODULE": "hypac_site.settings", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", "import os\n" + code],
        cwd=ROOT,
        env={**kept, **own, **variables},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.umask(umask) and None,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path, bits: int = 0o077) -> list[str]:
    return [str(path.relative_to(folder)) for path in [folder, *folder.rglob("*")] if mode(path) & bits]


def test_what_is_written_is_for_the_account_alone(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    said = run(folder, USE.replace("PLACE", str(folder)).replace("VAR", str(folder)))
    written = {path.name for path in folder.rglob("*")}
    assert {"secret_key", "hypac.sqlite3", "file", "of-a-command", "messages"} <= written
    assert open_to_others(folder) == []
    assert "could read" not in said


def test_what_an_older_version_left_open_is_closed_once_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    folder.mkdir()
    for name in ("hypac.sqlite3", "hypac.sqlite3-wal", "hypac.sqlite3-shm", "secret_key"):
        (folder / name).touch()
    (folder / "secret_key").write_text("of an older version " + "0123456789" * 5)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    told = run(folder, "import django; django.setup()")
    assert open_to_others(folder) == []
    assert told.count("could read") == 5
    assert "could read" not in run(folder, "import django; django.setup()")


def test_a_group_may_be_let_in(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    run(folder, USE.replace("PLACE", str(folder)).replace("VAR", str(folder)), HYPAC_UMASK="027")
    assert open_to_others(folder, 0o007) == []
    assert mode(folder / "hypac.sqlite3") == 0o640
    assert mode(folder / "media/projects/1/file") == 0o640
    assert mode(folder / "secret_key") == 0o600


@pytest.mark.parametrize("value", ["22", "022", "700", "777", "0o77", "abc", "070"])
def test_a_mask_that_lets_everybody_in_or_nobody_is_refused(value: str, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_UMASK", value)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_UMASK"):
        environment.umask("HYPAC_UMASK", 0o077)


def test_what_is_not_ours_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("shared", "link", "missing"):
        private_files.close(tmp_path / name, 0o077)
    assert (mode(tmp_path / "shared"), mode(tmp_path / "elsewhere")) == (0o1777, 0o755)


def test_where_it_cannot_be_changed_it_is_told_and_goes_on(tmp_path: Path, monkeypatch, caplog) -> None:
    def refuse(self: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    private_files.close(tmp_path, 0o077)
    assert "cannot be changed" in caplog.text


def test_static_files_are_for_everybody(tmp_path: Path) -> None:
    """They may be handed out by a proxy, and the image collects them as another account than it serves as.

    All are collected, whatever source maps vendored scripts name, under names that may be cached.
    """
    collect = "import django; django.setup()\nfrom django.core.management import call_command\n"
    collect += "call_command('collectstatic', '--noinput', '-v0')"
    static = tmp_path / "static"
    folders = {"HYPAC_STATIC_ROOT": str(static), "HYPAC_COLLECT_STATIC": "1"}
    run(tmp_path / "var", collect, umask=0o077, **folders)
    files = [path for path in static.rglob("*") if path.is_file()]
    assert list(static.glob("vendor/chart.umd.min.*.js.gz"))
    assert list(static.glob("charts.*.css"))
    assert {mode(path) for path in files} == {0o644}
    assert {mode(path) for path in [static, *static.rglob("*")] if path.is_dir()} == {0o755}
    assert mode(tmp_path / "var") == 0o700
