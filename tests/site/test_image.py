"""What stands beside the image: the list of what is inside, and how its build finds packages here."""

import importlib.util
import json
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from testbed.image import pip_here

FILE = Path(__file__).resolve().parents[2] / "docs/compose/contents.py"
LISTED = """\
:env:.cert='/certificates.pem'
:env:.default-timeout='60'
global.cert='/others.pem'
global.extra-index-url='\\nfile:///srv/packages/simple\\nhttps://packages.test/simple'
global.find-links='/srv/wheels'
install.index-url='https://index.test/simple'
"""


@pytest.fixture(scope="module")
def contents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contents", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_package_is_named_as_scanners_look_it_up(contents: ModuleType) -> None:
    names = [
        ("npm", "@picocss/pico", "2.1.1", "pkg:npm/%40picocss/pico@2.1.1"),
        ("deb/debian", "libstdc++6", "1:12.2-14", "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2-14"),
        ("pypi", "django", "5.2", "pkg:pypi/django@5.2"),
    ]
    for kind, name, version, purl in names:
        entry = contents.component(kind, name, version)
        assert (entry["name"], entry["version"], entry["purl"]) == (name, version, purl)


def test_every_python_package_and_every_asset_is_listed(contents: ModuleType) -> None:
    listed = {entry["purl"]: entry for entry in (*contents.python_packages(), *contents.browser_assets())}
    django = listed[f"pkg:pypi/django@{metadata.version('django')}"]
    assert django["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]
    assert f"pkg:pypi/prometheus-client@{metadata.version('prometheus_client')}" in listed
    vendored = json.loads(contents.VENDORED.read_text())["packages"]
    assert len([purl for purl in listed if purl.startswith("pkg:npm/")]) == len(vendored)


def test_the_build_is_given_the_indexes_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pip_here, "listed", lambda: LISTED)
    volumes = pip_here.mounts(tmp_path)
    assert volumes == [
        "/certificates.pem:/etc/pip-certificates.pem:ro",
        f"{tmp_path}/pip.conf:/etc/pip.conf:ro",
        "/srv/packages:/srv/packages:ro",
        "/srv/wheels:/srv/wheels:ro",
    ]
    assert (tmp_path / "pip.conf").read_text().splitlines() == [
        "[global]",
        "extra-index-url = file:///srv/packages/simple https://packages.test/simple",
        "find-links = /srv/wheels",
        "index-url = https://index.test/simple",
        "cert = /etc/pip-certificates.pem",
    ]


def test_without_any_set_up_pip_asks_where_it_always_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pip_here, "listed", lambda: "")
    assert pip_here.mounts(tmp_path) == [f"{tmp_path}/pip.conf:/etc/pip.conf:ro"]
    assert (tmp_path / "pip.conf").read_text() == "[global]\n"
