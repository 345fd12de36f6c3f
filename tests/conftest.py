"""Set-up of all tests: their environment, database and markers.

The settings read the environment when they are first imported. It is therefore cleared here of what a
developer's shell may hold, and points to a folder of its own; only DATABASE_URL is kept, so that
`DATABASE_URL=postgres://... make test` runs the same tests on PostgreSQL. Without it the database is an
SQLite file in that folder: threads and child processes can open it, the latter by HYPAC_VAR alone.
"""

import atexit
import gc
import os
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import django
import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.core.servers.basehttp import WSGIRequestHandler
from django.db import connections, transaction
from django.utils import translation
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware

from testbed.servers import drop_database
from tests.support import database_url
from tests.template_database import copy_postgres, copy_sqlite

if TYPE_CHECKING:
    from annotation.ports import NoRouting

KEPT = ("HYPAC_TEST_", "HYPAC_CHROMIUM", "HYPAC_DATA", "DJANGO_LIVE_TEST_SERVER_ADDRESS")
Made = TypeVar("Made")
COSTLY = re.compile(r"^pytestmark = .*?pytest\.mark\.costly", re.MULTILINE)
COSTLY_SECONDS = 2.0  # of a machine with nothing else to do
# Markers that stand in the module of a test, wherever one has them.
MARKED_IN_MODULES = {"database", "llm", "label_studio", "long", "slow"}
CHANGES_WHAT_STEPS_DO = {
    "caplog",
    "django_capture_on_commit_callbacks",
    "mailoutbox",
    "monkeypatch",
    "settings",
}
MARKED_BY_FIXTURE = {
    "browser": {"chromium"},
    "postgres": {"postgres_server", "postgres_url", "migrated_url", "postgres_site"},
    "redis": {"redis_server", "redis_url"},
}


def _prepare() -> None:
    gc.set_threshold(50_000, 20, 50)
    if settings.configured:
        raise pytest.UsageError(
            "The settings were loaded before the tests could set up their environment. "
            "Unset DJANGO_SETTINGS_MODULE and do not use --ds."
        )
    for name in list(os.environ):
        if name.startswith(("CELERY_", "DJANGO_", "HYPAC_")) and not name.startswith(KEPT):
            del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="hypac-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["HYPAC_VAR"] = str(folder)
    os.environ["DJANGO_SECRET_KEY"] = "only-for-tests-" + "0123456789" * 5
    os.environ["DJANGO_SETTINGS_MODULE"] = "hypac_site.settings"
    django.setup()
    # A worker process of xdist inherits the environment and has to come by here as well.
    del os.environ["DJANGO_SETTINGS_MODULE"]
    # Django's server writes head and body of an answer apart: Nagle's algorithm makes each body wait 40 ms.
    WSGIRequestHandler.disable_nagle_algorithm = True
    # A login takes a microsecond instead of a tenth of a second.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # All tests ask from one address, and often. Those of a limit set it themselves.
    settings.HYPAC_API_RATES = dict.fromkeys(settings.HYPAC_API_RATES, "")
    settings.HYPAC_LOGIN_RATES = dict.fromkeys(settings.HYPAC_LOGIN_RATES, "")


_prepare()


def _find_static_files_once() -> None:
    """Each client of a test loads the middleware anew, and WhiteNoise asks the disk for every file."""
    find, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def find_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = find_once


_find_static_files_once()

# Fixtures of all tests; they load the models, which the settings have to come before.
from testbed import states  # noqa: E402
from tests.logged_in import annotator, client_of, owner, project, waiting  # noqa: E402, F401

# Its profile for CI is in force there. Elsewhere, too, no example may fail because the machine is slow.
if hypothesis.settings.get_current_profile_name() == "default":
    patient = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
    hypothesis.settings.register_profile("patient", **patient)
    hypothesis.settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, names in MARKED_BY_FIXTURE.items():
            if fixtures & names:
                item.add_marker(marker)
    items.sort(key=_begins_late)


def _begins_late(item: pytest.Item) -> bool:
    """Tests of more than a minute come first: else one worker ends with them, and the others have nothing."""
    slow = item.get_closest_marker("slow") is not None and "tests/services/" in item.nodeid
    return not (slow or item.nodeid.startswith("tests/stateful/"))


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """The database of this process: a copy of the template (tests/template_database.py)."""
    database = connections["default"].settings_dict  # the settings' own, and known to every thread
    if database["ENGINE"] == "django.db.backends.sqlite3":
        copy_sqlite(Path(database["NAME"]))  # goes with its folder
        yield
        return
    server_url, name = database_url(), connections["default"].creation._get_test_db_name()
    copy_postgres(server_url, name)
    database["NAME"] = name
    yield
    with django_db_blocker.unblock():
        connections["default"].close()
    drop_database(server_url, name)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: it need not be walked for garbage again and again."""
    gc.collect()
    gc.freeze()


class Stored(Protocol):
    def __call__(self, make: Callable[[], Made]) -> Made: ...


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Stored]:
    """`stored(make)` calls it once for a module, and keeps its rows until the end of that.

    Each test of it finds them, works in a transaction of its own on top, and takes a copy of what was made.
    """

    def store(make: Callable[[], Made]) -> Made:
        with transaction.atomic():
            made = make()
            connections["default"].run_on_commit.clear()  # nobody works beside it
        return made

    with django_db_blocker.unblock():
        yield store
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture(scope="module", autouse=True)
def _draws(request: pytest.FixtureRequest) -> Iterator[random.Random]:
    """What is drawn is the same each time: a test that fails on one draw in a thousand fails one morning."""
    numbers = random.Random(request.node.nodeid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("routing.core.sampling.new_entropy", lambda: numbers.getrandbits(128))
        yield numbers


@pytest.fixture(autouse=True)
def _draws_of_its_own(request: pytest.FixtureRequest, _draws: random.Random) -> None:
    """Whatever ran before it."""
    _draws.seed(request.node.nodeid)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Keys of rows come again in the next test, where they mean others."""
    cache.clear()


@pytest.fixture(autouse=True)
def _language_of_the_settings() -> None:
    """The last request of another test, in its reader's language, leaves that behind."""
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture(autouse=True)
def _states_put_back(
    request: pytest.FixtureRequest, _draws: random.Random, _draws_of_its_own: None
) -> Iterator[None]:
    """Worlds are put back as they were reached before, unless a test may have changed what its steps do."""
    changed = os.environ.get("HYPAC_TEST_STATES") == "0" or _asked_for(request.node) & CHANGES_WHAT_STEPS_DO
    states.draw_for, states.test = None if changed else _draws.seed, request.node.nodeid
    yield
    states.draw_for = None


def _asked_for(test: pytest.Function) -> set[str]:
    """Fixtures that a test and those it has ask for; not those of plugins for every test."""
    known = test._fixtureinfo.name2fixturedefs
    ours = [name for name in test._fixtureinfo.initialnames if any(one.baseid for one in known.get(name, ()))]
    found, ahead = set[str](), [*test._fixtureinfo.argnames, *ours]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += (
                other for one in test._fixtureinfo.name2fixturedefs.get(name, ()) for other in one.argnames
            )
    return found


@pytest.fixture
def bare_port(monkeypatch: pytest.MonkeyPatch) -> "NoRouting":
    """What annotation tells and asks instead of routing: a test puts its own answers on it."""
    from annotation import ports

    port = ports.NoRouting()
    monkeypatch.setattr(ports, "_connected", port)
    return port


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What -m leaves out need not be imported first: that is a good part of the time."""
    if collection_path.suffix != ".py":
        return None
    if _is_quick(config):
        return True if COSTLY.search(collection_path.read_text()) else None
    wanted = config.option.markexpr.partition(" ")[0]
    if wanted in MARKED_IN_MODULES and f"pytest.mark.{wanted}" not in collection_path.read_text():
        return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name modules that keep a quick run from being quick."""
    if not _is_quick(config):
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    long = [f"{name} ({spent:.0f} s)" for name, spent in seconds.most_common() if spent > COSTLY_SECONDS]
    if long:
        terminalreporter.write_line(f"To be made faster, or marked as costly: {', '.join(long)}")


def _is_quick(config: pytest.Config) -> bool:
    return config.option.markexpr.startswith("not costly")
