"""What a view of the page on which people label costs, with the longest guidelines and the longest Markdown
item that is shown as such, in a table: milliseconds of processor in this process.

    .venv/bin/python benchmarks/markdown_pages.py [--views 20]

"before" renders guidelines and item at each view, as long as they are; "now" is what the site does. Each row
is a kind of text, ordinary and hostile. On an SQLite database in memory; nothing is left behind.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

KINDS: dict[str, Callable[[int], str]] = {
    "prose": lambda n: (
        "Some **bold** text with `code` and a [link](https://x.org).\n\n- one\n- two\n\n" * n
    )[:n],
    "table": lambda n: ("|a|b|\n|-|-|\n" + "|1|2|\n" * n)[:n],
    "images never closed": lambda n: ("![" * n)[:n],
    "brackets": lambda n: "[" * n,
    "emphasis": lambda n: ("*_" * n)[:n],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--views", type=int, default=20)
    views = parser.parse_args().views
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HYPAC_VAR=folder, DJANGO_SETTINGS_MODULE="hypac_site.settings")
        os.environ["DJANGO_ALLOWED_HOSTS"] = "testserver"
        for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
            os.environ.pop(name, None)
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print("| text | guidelines, item (characters) | before, ms | now, first view, ms | now, ms | ratio |")
        print("|---|--:|--:|--:|--:|--:|")
        for kind, make in KINDS.items():
            print(row(kind, make, views), flush=True)


def row(kind: str, make: Callable[[int], str], views: int) -> str:
    from annotation import limits, markdown

    guidelines, item = make(limits.GUIDELINES), make(limits.MARKDOWN)
    client, path = _page(guidelines, item)

    def view() -> float:
        began = time.process_time()
        assert client.get(path).status_code == 200
        return 1000 * (time.process_time() - began)

    view()  # imports and templates
    markdown.render_kept.cache_clear()
    first = view()
    now = statistics.median(view() for _ in range(views))
    before = now + statistics.median(_rendering(guidelines, item) for _ in range(3))
    sizes = f"{len(guidelines):,}, {len(item):,}"
    return f"| {kind} | {sizes} | {before:.0f} | {first:.0f} | {now:.1f} | {before / now:.0f} |"


def _rendering(*sources: str) -> float:
    from annotation import markdown

    began = time.process_time()
    for source in sources:
        markdown._parser.render(source)  # without the bounds of `render`
    return 1000 * (time.process_time() - began)


def _page(guidelines: str, text: str) -> tuple[Any, str]:
    from django.test import Client
    from django.urls import reverse

    from annotation import queue
    from testbed.factories import make_items, make_project

    project = make_project(guidelines=guidelines, text_format="markdown")
    items = make_items(project, [text])
    queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1)
    client = Client()
    client.force_login(project.created_by)
    return client, reverse("annotate", args=[project.slug])


if __name__ == "__main__":
    main()
