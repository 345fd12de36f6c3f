"""`manage.py version --check` says in words what does not agree, and ends with status 1."""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.db.migrations.recorder import MigrationRecorder

import manage
from hypac_site import version

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


def told(*options: str) -> str:
    out = StringIO()
    call_command("version", *options, stdout=out)
    return out.getvalue()


def test_the_version_stands_in_one_place(monkeypatch) -> None:
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    assert told() == f"HyPAC {found[1]}\n"
    for name in [name for name in version.os.environ if name.startswith("HYPAC_")]:
        if name not in version.documented() | version.OTHERS and not name.startswith(version.OF_TESTS):
            monkeypatch.delenv(name)
    assert "nothing is to be done" in told("--check")


def test_the_program_tells_it_and_not_that_of_django(monkeypatch, capsys) -> None:
    monkeypatch.setattr("django.setup", lambda: None)  # was called before all tests
    monkeypatch.setattr("sys.argv", ["manage.py", "version"])
    manage.main()
    assert capsys.readouterr().out == f"HyPAC {version.version()}\n"


def test_a_setting_with_a_bad_value_is_told_without_a_traceback(monkeypatch) -> None:
    def refuse() -> None:
        raise ImproperlyConfigured("HYPAC_OIDC_GROUPS is no JSON.")

    monkeypatch.setattr("django.setup", refuse)
    monkeypatch.setattr("sys.argv", ["manage.py", "version", "--check"])
    with pytest.raises(SystemExit, match=r"^HYPAC_OIDC_GROUPS is no JSON\.$"):
        manage.main()


def test_a_value_that_the_database_refuses_keeps_its_own_error(monkeypatch) -> None:
    """Also where the database lacks a migration: that is what the row is to be judged by."""

    def refuse() -> None:
        raise IntegrityError("NOT NULL constraint failed")

    monkeypatch.setattr("django.setup", refuse)
    monkeypatch.setattr(manage, "what_the_database_lacks", lambda: "The database is older.")
    monkeypatch.setattr("sys.argv", ["manage.py", "version"])
    with pytest.raises(IntegrityError):
        manage.main()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda rows: rows.filter(app="routing").delete(),
            r"older: it lacks \d+ of this version's migrations.*manage.py migrate",
        ),
        (
            lambda rows: rows.all().delete(),
            "empty: run manage.py migrate for a new site.*run manage.py restore",
        ),
        (lambda rows: rows.create(app="routing", name="9999_next"), "newer: it has routing.9999_next"),
        (lambda rows: rows.create(app="annotation", name="0002_task_types_and_pauses"), "before 0.3"),
    ],
)
def test_another_database_is_told_with_what_to_do(change, words: str) -> None:
    change(MigrationRecorder(connection).migration_qs)
    with pytest.raises(CommandError, match=words):
        told("--check")


def test_settings_that_are_none_or_will_be_are_told(monkeypatch) -> None:
    monkeypatch.setitem(version.DEPRECATED, "HYPAC_OLD", "set HYPAC_VAR.")
    ours = {"HYPAC_OLD": "1", "HYPAC_MAX_UPLOAD_BYTE": "1", "HYPAC_NO_SUCH": "", "HYPAC_VAR": "/x"}
    given = {**ours, "HYPAC_TEST_FUZZ": "1", "HYPAC_HOST": "x", "PATH": ""}
    near, none, old = version.of_environment(given)
    assert "Is HYPAC_MAX_UPLOAD_BYTES meant?" in near
    assert none.startswith("HYPAC_NO_SUCH is set, and no setting of this version. Take it out")
    assert old == "HYPAC_OLD is deprecated: set HYPAC_VAR."


def test_every_setting_is_documented() -> None:
    code = "".join(path.read_text() for path in (ROOT / "hypac_site").rglob("*.py"))
    asked = set(re.findall(r'environment\.\w+\(\s*"(HYPAC_[A-Z0-9_]+)"', code))
    assert len(asked) > 50
    assert asked <= version.documented()
