"""Waiting for what a page's own script sees. Playwright's wait_for_function asks a second time from inside
the page, where the content security policy forbids it; this asks from outside, as `evaluate` does.
"""

import time

from playwright.sync_api import Page

SECONDS = 60
PAUSE_MS = 50


def wait_until(page: Page, expression: str) -> None:
    """Until `expression`, JavaScript, is true; AssertionError where it does not become so."""
    end = time.monotonic() + SECONDS
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"waited {SECONDS} s for {expression}"
        page.wait_for_timeout(PAUSE_MS)


def skip(page: Page) -> None:
    """Skip the item that is shown for the first reason, by keys."""
    for key in ("s", "ArrowDown", "Enter"):
        page.keyboard.press(key)
