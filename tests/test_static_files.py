"""Static files are collected for production whatever source maps vendored scripts name."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings

from hypac_site.static_files import StaticFiles

pytestmark = pytest.mark.costly


def test_all_files_are_collected_under_names_that_may_be_cached(tmp_path: Path) -> None:
    storages = {"staticfiles": {"BACKEND": f"{StaticFiles.__module__}.{StaticFiles.__name__}"}}
    with override_settings(STATIC_ROOT=tmp_path, STORAGES=storages):
        call_command("collectstatic", interactive=False, verbosity=0)
    assert list(tmp_path.glob("vendor/chart.umd.min.*.js.gz"))
    assert list(tmp_path.glob("charts.*.css"))
