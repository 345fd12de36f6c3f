"""A real Chromium, driven by Playwright against a live server of the test.

The browser is HYPAC_CHROMIUM, else the first of PROGRAMS on PATH. Where there is none, the tests are
skipped - or fail, in CI.
"""

import os
import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Route,
    expect,
    sync_playwright,
)
from pytest_django.live_server_helper import LiveServer

from tests.support import missing

# The first is the same engine without windows: each page costs half of the processor's time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# No sandbox: containers do not allow it, and only our own pages are opened. The rest keeps the browser from
# talking to anybody but the live server.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Nothing takes so long but on a machine that does much else.
TIMEOUT_MS = 60_000
expect.set_options(timeout=TIMEOUT_MS)


def _program() -> str:
    if named := os.environ.get("HYPAC_CHROMIUM"):
        if not os.access(named, os.X_OK):
            pytest.fail(f"HYPAC_CHROMIUM={named!r} is not a program that can be run.", pytrace=False)
        return named
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    missing("browser", "No Chromium is installed.")


# Console errors that are no fault of a page: a refused request (whether it should be refused is for the
# test to say), and a poll of htmx that was cut off because the test went on to another page.
EXPECTED = ("Failed to load resource", "htmx:afterRequest", "htmx:sendAbort", "htmx:sendError")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process; each test gets its own context, as if its own fresh profile.

    To start one, with its driver, costs as much of the processor as to open ten pages.
    """
    program = _program()
    # Playwright's synchronous interface keeps an event loop running in this thread, and Django then refuses
    # database queries there, though nothing here is asynchronous: for the rest of the process, and in those
    # that its tests start.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            yield browser
            browser.close()


@pytest.fixture
def context(chromium: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    """A fresh profile, 1280 x 800, whose relative addresses are the live server's.

    The test fails where a page raised an error, broke the content security policy or asked another host.
    """
    problems: list[str] = []
    own_host = urlsplit(live_server.url).netloc

    def only_own_host(route: Route) -> None:
        if urlsplit(route.request.url).netloc == own_host:
            route.continue_()
        else:
            problems.append(f"asked another host: {route.request.url}")
            route.abort()

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(EXPECTED):
            problems.append(f"console: {message.text}")

    context = chromium.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    context.route("http*://**", only_own_host)
    context.on("console", note)
    context.on("weberror", lambda error: problems.append(f"script error: {error.error}"))
    yield context
    context.unroute_all(behavior="ignoreErrors")  # requests on their way when the test ended
    context.close()
    assert problems == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """An empty page of that profile."""
    return context.new_page()
