"""Pages do without the cache that web processes share while it cannot be reached."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from hypac_site.cache import SoftRedisCache
from testbed.servers import dead_port

pytestmark = pytest.mark.costly


@pytest.fixture
def port() -> Iterator[int]:
    """Nobody listens there."""
    with dead_port() as found:
        yield found


@pytest.fixture
def dead(port: int, monkeypatch: pytest.MonkeyPatch) -> SoftRedisCache:
    monkeypatch.setattr("hypac_site.cache.PAUSE_SECONDS", 3600.0)
    return SoftRedisCache(f"redis://:hunter2@127.0.0.1:{port}/0", {})


def test_nothing_is_found_and_nothing_fails(dead: SoftRedisCache, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        dead.set("a", 1, 30)
        assert dead.get("a") is None
        assert dead.get("a", "otherwise") == "otherwise"
        assert dead.get_or_set("a", lambda: 7) == 7
        assert dead.get_many(["a", "b"]) == {}
        assert dead.set_many({"a": 1}) == ["a"]
        assert dead.add("a", 1) is True
        assert "a" not in dead
        dead.delete("a")
        dead.delete_many(["a"])
        dead.clear()
    assert len(caplog.records) == 1, "it is left alone for a while, and told once"
    assert "hunter2" not in caplog.text


def test_it_is_tried_again_after_a_while(dead: SoftRedisCache, monkeypatch: pytest.MonkeyPatch) -> None:
    dead.set("a", 1)
    assert dead.paused_until > 0
    dead.paused_until = 0.0
    monkeypatch.setattr(type(dead._cache), "get", lambda self, key, default: 5)
    assert dead.get("a") == 5


@pytest.mark.django_db
def test_a_page_that_counts_is_shown_without_it(settings, port: int) -> None:
    address = f"redis://127.0.0.1:{port}/0"
    settings.CACHES = {"default": {"BACKEND": "hypac_site.cache.SoftRedisCache", "LOCATION": address}}
    assert [Client().get("/join/no-such-token/").status_code for _ in range(3)] == [404] * 3
