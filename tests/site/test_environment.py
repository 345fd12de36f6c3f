"""Variables of the environment: what is refused, with the name of the variable and no secret in the words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from hypac_site import environment

ROOT = Path(__file__).resolve().parents[2]


class TestCacheUrl:
    @pytest.mark.parametrize(
        ("own", "broker", "found"),
        [
            ("", "redis://a:6379/0", "redis://a:6379/0"),
            ("", "rediss://a:6379/0", "rediss://a:6379/0"),
            ("redis://b:6379/1", "redis://a:6379/0", "redis://b:6379/1"),
            ("", "amqp://a", ""),
            ("", "", ""),
        ],
    )
    def test_the_broker_serves_where_it_is_a_redis(self, own, broker, found, monkeypatch) -> None:
        monkeypatch.setenv("HYPAC_CACHE_URL", own)
        assert environment.cache_url("HYPAC_CACHE_URL", broker) == found

    def test_nothing_but_a_redis(self, monkeypatch) -> None:
        monkeypatch.setenv("HYPAC_CACHE_URL", "memcached://user:hunter2@host")
        with pytest.raises(ImproperlyConfigured, match="HYPAC_CACHE_URL") as caught:
            environment.cache_url("HYPAC_CACHE_URL", "")
        assert "hunter2" not in str(caught.value)


def test_a_short_token_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_METRICS_TOKEN", "hunter2")
    with pytest.raises(ImproperlyConfigured, match="HYPAC_METRICS_TOKEN") as caught:
        environment.bearer_token("HYPAC_METRICS_TOKEN")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("HYPAC_METRICS_TOKEN", "")
    assert environment.bearer_token("HYPAC_METRICS_TOKEN") == ""


def test_one_of_some_values(monkeypatch) -> None:
    monkeypatch.delenv("HYPAC_LOG_FORMAT", raising=False)
    assert environment.one_of("HYPAC_LOG_FORMAT", ("text", "json")) == "text"
    monkeypatch.setenv("HYPAC_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="none of text, json"):
        environment.one_of("HYPAC_LOG_FORMAT", ("text", "json"))


def test_two_variables_move_everything(tmp_path: Path) -> None:
    """From SQLite, messages as files and a memory of each process to PostgreSQL and Redis."""
    show = """
import django; django.setup()
from django.conf import settings as s
from hypac_site.celery import app
print(s.DATABASES["default"]["ENGINE"], app.conf.broker_url.split(":")[0], s.CACHES["default"]["BACKEND"])
"""

    def shown(**variables: str) -> list[str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL",)}
        own = {"HYPAC_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
        done = subprocess.run(
            [sys.executable, "-c", show],
            cwd=ROOT,
            env={**kept, **own, "PYTHONPATH": str(ROOT), **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert shown() == [
        "django.db.backends.sqlite3",
        "filesystem",
        "django.core.cache.backends.locmem.LocMemCache",
    ]
    moved = shown(DATABASE_URL="postgres://u@host/d", CELERY_BROKER_URL="redis://host:6379/0")
    assert moved == ["django.db.backends.postgresql", "redis", "hypac_site.cache.SoftRedisCache"]
