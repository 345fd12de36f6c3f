"""Pictures of every page, light, dark and on a phone: `make screenshots` puts them into var/screenshots.

Nothing is asserted. The pages are those of the table in tests/pages/test_access.py, and those of projects in
several states. HYPAC_SCREENSHOT_LANGUAGE says what the browser asks for ("fr"); English without it.
HYPAC_SCREENSHOT_ONLY takes those alone in whose title it occurs, a regular expression ("plan|review").
"""

import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "var" / "screenshots"
# name: (colour scheme, width in CSS pixels)
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}
MESSAGES = (
    "My parcel says delivered, but nothing has come to the door.",
    "I was charged twice for the same order; please look into it.",
    "How do I change the address of an order that has not been sent yet?",
    "The app closes by itself whenever I open my basket.",
    "Thank you, the replacement came within two days!",
    "Could you tell me when the blue one will be back in stock?",
)

# (title, path, user or None)
Shot = tuple[str, str, Any]


def main() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print("Filling projects ...", flush=True)
    only = re.compile(os.environ.get("HYPAC_SCREENSHOT_ONLY", ""))
    shots = [shot for shot in projects() if only.search(shot[0])]
    print(f"Taking {len(shots)} pages ...", flush=True)
    with server() as address:
        take(address, shots)
    print(f"{OUT / 'index.html'}")


def projects() -> Iterator[Shot]:
    """Projects in several states, and the pages of each."""
    from django.urls import reverse

    from annotation.labelling import queue
    from routing.delivery.deliver import deliver
    from routing.runs.certify import analyse
    from testbed.factories import add_member, make_image, make_image_items, make_project, make_user
    from testbed.worlds import NUMBERS, SETS, World, make_world
    from tests.pages import test_access

    def message(index: int, row: dict[str, str]) -> None:
        row["text"] = MESSAGES[index % len(MESSAGES)]

    def world(name: str, size: int = 240, **fields: Any) -> World:
        made = make_world(size, change=message, **fields)
        made.project.name = name
        made.project.guidelines = "Read the whole message. **Cats** come before dogs, dogs before emus."
        made.project.save(update_fields=["name", "guidelines"])
        return made

    def of(world: World, *names: str, user: Any = None, **parts: Any) -> Iterator[Shot]:
        for name in names:
            path = reverse(name, kwargs={"slug": world.project.slug, **parts})
            yield f"{world.project.name}: {name}", path, user or world.manager

    yield from (("login", reverse("login"), None),)

    everything = world("Everything in it")
    arguments = test_access.arguments.__wrapped__(everything)  # type: ignore[attr-defined]
    for name, table in test_access.PAGES.items():
        if "GET" in table:
            yield f"every page: {name}", test_access.address(name, arguments), everything.manager
    for role in ("annotator", "reviewer", "viewer"):
        somebody = add_member(everything.project, role)
        yield from of(everything, "overview", user=somebody)

    newcomer = make_user("newcomer")
    for name, methods in test_access.SIGNED_IN.items():
        if "GET" in methods and not name.startswith(("api_", "passkey_remove")):
            yield f"signed in: {name}", test_access.address(name, {**arguments, "token": "x"}), newcomer
    yield "not found", "/nowhere/", newcomer
    yield "project list", reverse("project_list"), everything.manager

    empty = make_project(name="Nothing in it yet")
    for name in ("overview", "items", "sources", "plan", "runs", "deliveries", "annotate", "jobs"):
        path = reverse(name, kwargs={"slug": empty.slug})
        yield f"empty project: {name}", path, empty.created_by

    waiting = world("A run that has begun")
    run = waiting.start(m=100)
    yield from of(waiting, "overview", "jobs")
    yield from of(waiting, "run", number=run.number)

    drawn_by_others = world("Waits for a stranger's text")
    run = drawn_by_others.start(m=100, draw_from="nonce")
    drawn_by_others.do("prepare_run")
    yield from of(drawn_by_others, "overview", "plan")
    yield from of(drawn_by_others, "run", number=run.number)

    labelled = world("Being labelled")
    run = labelled.start(m=100)
    labelled.do("prepare_run")
    labelled.label(limit=37)
    yield from of(labelled, "overview", "items")
    yield from of(labelled, "run", number=run.number)
    yield from of(labelled, "annotate", "overview", user=labelled.annotators[0])

    analysed = world("Analysed", 400)
    run = analysed.calibrated(m=150)
    analyse(run=run, user=analysed.manager)
    analysed.do("analyse_run")
    yield from of(analysed, "overview")
    yield from of(analysed, "run", number=run.number)

    complete = world("Complete and delivered", 400)
    run = complete.complete(m=150)
    deliver(run=run, user=complete.manager)
    complete.do("deliver_run")
    yield from of(complete, "overview", "progress", "deliveries", "items")
    yield from of(complete, "run", number=run.number)

    for title, answers in (("Several labels", SETS), ("Numbers", NUMBERS)):
        kind = world(title, 60, answers=answers)
        kind.start(m=30)
        kind.do("prepare_run")
        yield from of(kind, "annotate", user=kind.annotators[0])

    images = make_project(name="Images", choices=("cat", "dog"))
    items = make_image_items(images, [make_image(9_000 + index, size=(320, 240)) for index in range(6)])
    queue.create_batch(
        project=images,
        item_ids=[item.pk for item in items],
        blind=True,
        priority=1,
        entropy=1,
    )
    for name in ("annotate", "items"):
        yield f"images: {name}", reverse(name, kwargs={"slug": images.slug}), images.created_by


class server:
    """The site on a free port, as long as the block lasts."""

    def __enter__(self) -> str:
        from django.contrib.staticfiles.handlers import StaticFilesHandler
        from django.core.wsgi import get_wsgi_application
        from waitress.server import create_server

        site = StaticFilesHandler(get_wsgi_application())
        self.server = create_server(site, host="127.0.0.1", port=0, threads=4)
        threading.Thread(target=self.server.run, daemon=True).start()
        return f"http://127.0.0.1:{self.server.effective_port}"

    def __exit__(self, *error: object) -> None:
        self.server.close()


def take(address: str, shots: list[Shot]) -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS, _program

    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    rows: list[str] = []
    sessions = {user.pk: session_of(user) for _title, _path, user in shots if user}
    shots = [shot for shot in shots if is_page(shot)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=FLAGS)
        pages = {}
        for look, (scheme, width) in LOOKS.items():
            context = browser.new_context(
                base_url=address,
                color_scheme=scheme,
                viewport={"width": width, "height": 800},
                reduced_motion="reduce",
                locale=os.environ.get("HYPAC_SCREENSHOT_LANGUAGE", "en"),
            )
            pages[look] = context.new_page()
        for number, (title, path, user) in enumerate(shots, 1):
            cells = []
            for look, page in pages.items():
                page.context.clear_cookies()
                if user:
                    page.context.add_cookies([{**sessions[user.pk], "url": address}])
                page.goto(path)
                name = f"{number:02}-{title.replace(':', '').replace(' ', '-')}-{look}.png"
                page.screenshot(path=OUT / name, full_page=True)
                cells.append(f'<td><a href="{name}"><img loading="lazy" width="420" src="{name}"></a></td>')
            rows.append(f"<tr><th>{escape(title)}<br><small>{escape(path)}</small></th>{''.join(cells)}</tr>")
        browser.close()
    head = "".join(f"<th>{look}</th>" for look in LOOKS)
    table = f"<!doctype html><meta charset=utf-8><table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
    (OUT / "index.html").write_text(table, encoding="utf-8")


def is_page(shot: Shot) -> bool:
    """Whether a whole page is there: not a part of one, a file, or the way on to another page."""
    from django.test import Client

    _title, path, user = shot
    client = Client(SERVER_NAME="localhost")
    if user:
        client.force_login(user)
    answer = client.get(path)
    if answer.streaming or "Content-Disposition" in answer.headers or answer.status_code == 302:
        return False
    return b"<html" in answer.content


def session_of(user: Any) -> dict[str, str]:
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as state:
        for variable in [name for name in os.environ if name.startswith(("CELERY_", "DJANGO_", "DATABASE_"))]:
            del os.environ[variable]
        os.environ.update(HYPAC_VAR=state, DJANGO_DEBUG="0", DJANGO_SETTINGS_MODULE="hypac_site.settings")
        django.setup()
        main()
        sys.exit()
