"""The rules of the house that a machine can check: packages, import rules, vendored files, file sizes."""

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testbed.imports import circles, edges_of

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"
REQUIREMENT_FILES = ("requirements.txt", "requirements-gpu.txt", "requirements-dev.txt")

MAX_LINES = 400
# Files that may be longer, each with its reason.
LONG_FILES: dict[str, str] = {
    "clients/python/hypac_client/models.py": "made from the API's schema; nobody edits it",
    "clients/verify/hypac_verify/delivery.py": "all that is asked of a delivered row, from top to bottom",
    "hypac_site/settings.py": "all settings in one place, each beside why it is what it is",
    "routing/models/runs.py": "all columns of a run, each with what it holds, and its constraints",
    "tests/routing/runs/test_later_audit.py": "the audit from its marks to its alarm, in one world",
    "tests/routing/runs/test_later_items.py": "items that come later, from the question to the delivery",
    "tests/pages/test_access.py": "the one table of every address x method x role",
}
CODE = {".css", ".html", ".js", ".py"}

# Paths that exist on one machine only, and addresses of package indexes: which one is used is for each
# installation's own configuration to say.
LOCAL = re.compile(
    r"(?<![\w.])/(?:root|home/[a-z_][\w-]*|Users/[A-Za-z_][\w-]*)/"
    r"|--(?:extra-)?index-url|--find-links|--trusted-host"
    r"|https?://(?:[\w-]+\.)*(?:pythonhosted\.org|npmjs\.(?:org|com)/|yarnpkg\.com)"
    r"|https?://pypi\.org/simple"
)


# A window that the browser makes: not ours to word, to translate or to style, and some browsers suppress it.
NATIVE_DIALOG = re.compile(r"\b(confirm|alert|prompt)\(|hx-(confirm|prompt)")


@cache
def tracked_files() -> tuple[Path, ...]:
    """All files under version control that are in the work tree."""
    outcome = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False
    )
    if outcome.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of files")
    paths = (ROOT / name for name in outcome.stdout.decode().split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def is_vendored(path: Path) -> bool:
    return path.is_relative_to(VENDOR)


def requirements(name: str) -> list[Requirement]:
    lines = [line.split(" #")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-r "))]


def pinned(*names: str) -> dict[str, Requirement]:
    return {canonicalize_name(entry.name): entry for name in names for entry in requirements(name)}


# --- Packages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*REQUIREMENT_FILES, "requirements-llm-cpu.txt"])
def test_requirements_are_pinned_to_one_version_and_name_no_index(name: str) -> None:
    for line in (ROOT / name).read_text().splitlines():
        assert not line.startswith("-") or line == "-r requirements.txt", f"{name}: option {line!r}"
    for entry in requirements(name):
        assert entry.url is None, f"{name}: {entry} names an address"
        operators = [specifier.operator for specifier in entry.specifier]
        assert operators == ["=="], f"{name}: {entry} is not pinned with =="
        assert "*" not in str(entry.specifier), f"{name}: {entry} leaves a part of the version open"


def test_no_package_is_pinned_twice() -> None:
    names = [canonicalize_name(entry.name) for name in REQUIREMENT_FILES for entry in requirements(name)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("names", [("requirements.txt",), ("requirements.txt", "requirements-dev.txt")])
def test_what_pinned_packages_need_is_pinned_too(names: tuple[str, ...]) -> None:
    known = pinned(*names)
    missing = []
    for key, entry in known.items():
        if entry.marker is not None and not entry.marker.evaluate():
            continue
        for line in importlib.metadata.requires(key) or []:
            need = Requirement(line)
            extras = entry.extras or {""}
            applies = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
            if applies and canonicalize_name(need.name) not in known:
                missing.append(f"{need.name} (for {entry.name})")
    assert missing == []


# --- Import rules -------------------------------------------------------------------------------------------


def test_import_rules_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    outcome = subprocess.run(
        [program, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "4 kept, 0 broken" in outcome.stdout


PACKAGES_OF_OURS = ("annotation", "benchmarks", "hypac_site", "routing", "testbed", "tests")


@pytest.fixture(scope="module")
def edges() -> dict[str, set[str]]:
    return edges_of(ROOT, PACKAGES_OF_OURS)


@pytest.mark.costly
def test_no_modules_import_each_other_in_a_circle(edges: dict[str, set[str]]) -> None:
    assert len(edges) > 500
    found = [
        [f"{name} -> {', '.join(sorted(edges[name] & circle))}" for name in sorted(circle)]
        for circle in circles(edges)
    ]
    assert found == [], "imports inside functions count, those under TYPE_CHECKING do not"


@pytest.mark.costly
def test_tests_and_benchmarks_share_a_package_and_nothing_else(edges: dict[str, set[str]]) -> None:
    kept_from = {
        "benchmarks": ("tests",),
        "tests": ("benchmarks",),
        "testbed": ("benchmarks", "tests"),
        **dict.fromkeys(("annotation", "hypac_site", "routing"), ("benchmarks", "testbed", "tests")),
    }
    found = [
        f"{name} -> {other}"
        for name, others in edges.items()
        for other in others
        if other.startswith(kept_from[name.partition(".")[0]])
    ]
    assert found == []


def test_circles_are_found(tmp_path: Path) -> None:
    sources = {
        "above": "from ours import below, inside\n",
        "below": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ours import above\n",
        "inside": "def later():\n    from ours.above import name\n",
    }
    (tmp_path / "ours").mkdir()
    for name, source in sources.items():
        (tmp_path / "ours" / f"{name}.py").write_text(source)
    assert circles(edges_of(tmp_path, ("ours",))) == [{"ours.above", "ours.inside"}]


def test_the_core_imports_where_there_is_no_django() -> None:
    script = """
import pkgutil, sys
for name in ("django", "celery", "rest_framework", "psycopg", "redis", "httpx"):
    sys.modules[name] = None  # an import of it now fails
import routing.core
for module in pkgutil.walk_packages(routing.core.__path__, "routing.core."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
"""
    outcome = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    from django.core.management import call_command

    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_no_instance_holds_an_expression_before_it_is_stored() -> None:
    from django.apps import apps

    for model in apps.get_app_config("annotation").get_models():
        for field in model._meta.concrete_fields:
            assert field.has_default() or not field.has_db_default(), field


# --- Files --------------------------------------------------------------------------------------------------


def test_vendored_files_are_the_ones_in_the_manifest() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    expected = {
        entry["path"]: entry["sha256"] for package in manifest["packages"] for entry in package["files"]
    }
    own = {"manifest.json", "VENDORED.md"}
    present = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name not in own
    }
    assert present == expected


def test_each_vendored_package_is_documented_and_brings_its_licence() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    page = (VENDOR / "VENDORED.md").read_text()
    for package in manifest["packages"]:
        assert f"{package['version']} | {package['licence']}" in page, package["name"]
        assert any("LICENSE" in entry["path"] for entry in package["files"]), package["name"]


def test_the_licence_is_the_unchanged_apache_licence() -> None:
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_files_can_be_read_at_a_sitting() -> None:
    long = {}
    for path in tracked_files():
        if path.suffix in CODE and not is_vendored(path) and "migrations" not in path.parts:
            lines = len(path.read_text().splitlines())
            if lines > MAX_LINES:
                long[path.relative_to(ROOT).as_posix()] = lines
    unlisted = {name: lines for name, lines in long.items() if name not in LONG_FILES}
    assert unlisted == {}, f"over {MAX_LINES} lines: split them, or list them in LONG_FILES with a reason"
    assert set(LONG_FILES) <= set(long), "listed in LONG_FILES, but short enough"


def test_no_file_names_a_place_on_one_machine_or_a_package_index() -> None:
    here = Path(__file__).resolve()
    # This checkout's own place, unless it is so short that it may well mean something else.
    own_place = str(ROOT) if len(ROOT.parts) > 2 else "\0"
    found = []
    for path in tracked_files():
        if path == here or is_vendored(path):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # an image or another binary file
        for number, line in enumerate(text.splitlines(), start=1):
            if LOCAL.search(line) or own_place in line:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


def test_no_page_asks_in_a_window_of_the_browser() -> None:
    """A form says with data-ask what it asks (templates/components/_ask.html)."""
    pages = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "static").rglob("*.js")]
    own = [path for path in pages if not is_vendored(path)]
    assert [path.name for path in own if NATIVE_DIALOG.search(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "cd /root/site",
        'PATH = "/home/anna/hypac"',
        "/Users/anna/x",
        "--index-url x",
        "https://pypi.org/simple/x",
    ],
)
def test_local_places_are_recognised(text: str) -> None:
    assert LOCAL.search(text)


@pytest.mark.parametrize(
    "text", ["https://example.org/home/anna/", "/srv/hypac/", "see https://pypi.org/project/x"]
)
def test_ordinary_paths_and_addresses_are_left_alone(text: str) -> None:
    assert not LOCAL.search(text)
