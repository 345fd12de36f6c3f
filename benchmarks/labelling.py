"""How fast a person can label, in a table: keys and milliseconds per label, layout shift, bytes.

    .venv/bin/python benchmarks/labelling.py [--items 10000] [--labels 50] [--runs 3]
    .venv/bin/python benchmarks/labelling.py --label-studio http://127.0.0.1:8080 --token TOKEN

Starts `manage.py serve` on a state of its own (SQLite), fills a project, and drives a real Chromium through
the page on which people label: one key for each label. "key to next" is the time from the press of the key
that gives the label to the frame in which the next item's text stands on the screen, as the page itself
measures it. "per label" is the whole round when the next key comes as soon as the page takes it.

With --label-studio the same script drives the labelling page of that server through the same texts and
labels (it makes a project of its own there, over the REST API, with --token): the hotkey of the label, then
the hotkey that submits.
"""

import gzip
import os
import secrets
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import httpx
import numpy as np
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error as PlaywrightError,
    Page,
    Response,
    sync_playwright,
)
from runner import Table, installation, machine, options_of, served

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
KEYS = {"cat": "1", "dog": "2"}
READY = "#task[data-ready]"
READY_IN_LABEL_STUDIO = "button[aria-label*='ubmit']:not([disabled])"
PASSWORD = secrets.token_urlsafe(16)

# Notes, in the page: when a key went down, and the first frame in which another item's text stands there.
# Every shift of the layout counts, also those right after a key, which the usual definition leaves out.
WATCH = """
() => {
  const marker = /sample \\d{6}/;
  const state = (window.__watch = { item: null, pressed: 0, times: [], shift: 0 });
  const shown = () => {
    const found = marker.exec(document.body ? document.body.innerText : "");
    return found ? found[0] : null;
  };
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Control") state.pressed = performance.now();
  }, true);
  const look = () => {
    const now = shown();
    if (now && now !== state.item) {
      if (state.item && state.pressed) state.times.push(performance.now() - state.pressed);
      state.item = now;
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) state.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
}
"""


class Round(NamedTuple):
    """Milliseconds for each label, and what the page moved and fetched."""

    presses: int
    to_next: list[float]
    per_label: list[float]
    shift: float
    first_load: int
    per_item: float


class Fetched:
    """Bytes of the answers' bodies, compressed by gzip as a proxy would where they did not come so."""

    def __init__(self, page: Page) -> None:
        self.total = 0
        self._answers: list[Response] = []
        page.on("response", lambda answer: self._answers.append(answer))

    def count(self) -> int:
        """What has been fetched since the last time."""
        total = 0
        for answer in self._answers:
            # Redirects and pings have no body.
            with suppress(PlaywrightError):
                total += len(gzip.compress(answer.body(), 6))
        self._answers.clear()
        return total


def label_all(
    page: Page, labels: int, keys: Callable[[int], list[str]], ready: str, first_load: int
) -> Round:
    """Give `labels` labels. `keys` are pressed for the n-th; where `ready` matches, the page takes keys."""
    fetched = Fetched(page)
    per_label = []
    for number in range(labels):
        page.wait_for_selector(ready)
        before = page.evaluate("window.__watch.item")
        began = time.perf_counter()
        for key in keys(number):
            page.keyboard.press(key)
        page.wait_for_function("item => window.__watch.item !== item", arg=before, polling="raf")
        page.wait_for_selector(ready)
        per_label.append((time.perf_counter() - began) * 1000)
    page.wait_for_timeout(500)
    state = page.evaluate("window.__watch")
    return Round(
        presses=len(keys(0)),
        to_next=state["times"][-labels:],
        per_label=per_label,
        shift=state["shift"],
        first_load=first_load,
        per_item=fetched.count() / labels,
    )


# --- HyPAC --------------------------------------------------------------------------------------------------


def fill(items: int) -> str:
    from annotation.labelling import queue
    from testbed.factories import add_member, make_items, make_project, make_user

    project = make_project(choices=list(KEYS))
    add_member(project, "annotator", make_user("bench", password=PASSWORD))
    made = make_items(project, [text(number) for number in range(items)])
    queue.create_batch(
        project=project, item_ids=[item.pk for item in made], blind=False, priority=1, entropy=1
    )
    return project.slug


def in_hypac(context: BrowserContext, labels: int, address: str, slug: str) -> Round:
    page = context.new_page()
    page.goto(f"{address}/projects/{slug}/annotate/")
    page.get_by_label("Username").fill("bench")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    with fresh(context) as (page, first):
        page.goto(f"{address}/projects/{slug}/annotate/")
        page.wait_for_selector(READY)
        page.wait_for_timeout(300)
        return label_all(page, labels, lambda n: [key(n)], READY, first.count())


@contextmanager
def fresh(context: BrowserContext) -> Iterator[tuple[Page, Fetched]]:
    """A page of a new profile with the same session: all that a first visit loads."""
    own = context.browser.new_context(storage_state=context.storage_state())  # type: ignore[union-attr]
    page = own.new_page()
    page.set_default_timeout(60_000)
    page.add_init_script(f"({WATCH})()")
    yield page, Fetched(page)
    own.close()


def key(number: int) -> str:
    """Of the label of the n-th text."""
    return list(KEYS.values())[number % 2]


# --- Label Studio -------------------------------------------------------------------------------------------

LABEL_CONFIG = """
<View><Text name="text" value="$text"/><Choices name="label" toName="text" choice="single">
<Choice value="cat" hotkey="1"/><Choice value="dog" hotkey="2"/></Choices></View>
"""


def fill_label_studio(address: str, token: str, items: int) -> int:
    client = httpx.Client(
        base_url=address, headers={"Authorization": f"Token {token}"}, timeout=600, trust_env=False
    )
    project = client.post(
        "/api/projects",
        json={"title": "Benchmark", "label_config": LABEL_CONFIG, "sampling": "Sequential sampling"},
    )
    number = int(project.raise_for_status().json()["id"])
    tasks = [{"data": {"text": text(n)}} for n in range(items)]
    for start in range(0, items, 2000):
        client.post(f"/api/projects/{number}/import", json=tasks[start : start + 2000]).raise_for_status()
    return number


def in_label_studio(context: BrowserContext, labels: int, options: Namespace, project: int) -> Round:
    page = context.new_page()
    page.goto(f"{options.label_studio}/user/login/")
    page.locator("input[name=email]").fill(options.user)
    page.locator("input[name=password]").fill(options.password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login" not in url)
    with fresh(context) as (page, first):
        page.goto(f"{options.label_studio}/projects/{project}/data?labeling=1")
        page.wait_for_selector(READY_IN_LABEL_STUDIO)
        page.wait_for_timeout(1000)
        loaded = first.count()
        page.locator("body").click(position={"x": 5, "y": 400})
        return label_all(page, labels, lambda n: [key(n), "Control+Enter"], READY_IN_LABEL_STUDIO, loaded)


# --- Table --------------------------------------------------------------------------------------------------


def text(number: int) -> str:
    return f"sample {number:06} is a short text of the length of a sentence, as people label thousands of"


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    # Playwright's event loop in this thread would make Django refuse the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def row(rounds: list[Round]) -> tuple[str, ...]:
    to_next = [np.quantile(one.to_next, (0.5, 0.95)) for one in rounds]
    return (
        f"{rounds[0].presses}",
        *(f"{middle:.0f}" for middle in np.median(to_next, axis=0)),
        f"{np.median([np.median(one.per_label) for one in rounds]):.0f}",
        f"{max(one.shift for one in rounds):.4f}",
        f"{rounds[0].first_load / 1000:.0f} kB",
        f"{max(one.per_item for one in rounds) / 1000:.1f} kB",
    )


def main() -> None:
    options = options_of(
        __doc__,
        items=(10_000, "in the project"),
        labels=(50, "labels in a run"),
        runs=(3, "of which the medians are shown"),
        chromium=("/usr/bin/chromium", "the browser"),
        label_studio=("", "address of a running Label Studio to compare with"),
        token=("", "API token of its user (legacy token)"),
        user=("", "e-mail address of that user"),
        password=("", "of that user"),
    )
    with chromium(options.chromium) as browser:

        def rounds(way: Callable[..., Round], *more: Any) -> tuple[str, ...]:
            found = [way(browser.new_context(), options.labels, *more) for _ in range(options.runs)]
            return row(found)

        about = f"{options.items:,} items on SQLite, {options.labels} labels a run, {options.runs} runs"
        print(f"{about}; Chromium {browser.version}; {machine()}")
        heads = ("key presses", "key to next, ms", "p95", "per label, ms", "layout shift", "first load")
        table = Table("", *heads, "per item")
        with installation():
            slug = fill(options.items)
            with served() as (address, _process):
                table.row("HyPAC", *rounds(in_hypac, address, slug))
        if options.label_studio:
            project = fill_label_studio(options.label_studio, options.token, options.items)
            table.row("Label Studio", *rounds(in_label_studio, options, project))


if __name__ == "__main__":
    main()
