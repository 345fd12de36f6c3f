"""What every page has alike: at most one primary button, the way to it, icons that are there."""

import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client
from django.test.html import Element, parse_html
from django.urls import reverse

from annotation.models import User
from testbed.factories import add_member, make_project
from testbed.worlds import World, make_world
from tests.pages import test_access

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

# A project with everything in it, and the parts of addresses that lead to its things.
world = test_access.world
arguments = test_access.arguments

LESSER = {"secondary", "quiet", "danger", "choice", "word"}


def within(element: Element) -> Iterator[Element]:
    for child in element.children:
        if isinstance(child, Element):
            yield child
            yield from within(child)


def attributes(element: Element) -> dict[str, str]:
    return dict(element.attributes)


def classes(element: Element) -> set[str]:
    return set(attributes(element).get("class", "").split())


def primary_buttons(page: Element) -> list[str]:
    """Those in the page itself; what a dialog asks stands for itself."""
    main = next(element for element in within(page) if element.name == "main")
    dialogs = {id(part) for one in within(main) if one.name == "dialog" for part in within(one)}
    return [
        str(element)
        for element in within(main)
        if (element.name == "button" or attributes(element).get("role") == "button")
        and not classes(element) & LESSER
        and "hidden" not in attributes(element)
        and id(element) not in dialogs
    ]


def pages_of(user: User, addresses: list[str]) -> Iterator[tuple[str, Element]]:
    """Whole pages at these addresses; parts of pages, files and ways on to other pages are none."""
    client = Client()
    client.force_login(user)
    for address in addresses:
        answer = client.get(address)
        if answer.status_code == 200 and not answer.streaming and b"</html>" in answer.content:
            yield address, parse_html(answer.content.decode())


def wrong_ways(address: str, page: Element, seen: list[str]) -> list[str]:
    """Breadcrumbs that lead elsewhere than along the address, or nowhere; no entry of the navigation."""
    crumbs = next((one for one in within(page) if "crumbs" in classes(one)), None)
    if crumbs is None:
        return [] if not address.startswith("/projects/") or address == "/projects/new/" else ["none"]
    links = [attributes(one) for one in within(crumbs) if one.name == "a"]
    ways = [link["href"] for link in links]
    current = [link["href"] for link in links if link.get("aria-current") == "page"]
    along = ways == sorted(ways, key=len) and all(address.startswith(way) for way in ways)
    entries = [one for nav in within(page) if "project-nav" in classes(nav) for one in within(nav)]
    marked = sum("aria-current" in attributes(one) for one in entries)
    # Annotators come to rounds from the overview.
    in_its_place = marked == 1 or (marked == 0 and "/rounds/" in address)
    is_right = along and set(ways) <= set(seen) and current == [address] and in_its_place
    return [] if is_right else ways or ["none"]


def of_everything(arguments: dict[str, object]) -> list[str]:
    return [
        test_access.address(name, arguments) for name, table in test_access.PAGES.items() if "GET" in table
    ]


def of(project: object, *names: str) -> list[str]:
    return [reverse(name, args=[project.slug]) for name in names]


def test_each_page_has_one_primary_button_at_most_and_the_way_to_it(
    world: World, arguments: dict[str, object]
) -> None:
    empty, planned, begun = make_project(), make_world(60), make_world(60)
    begun.start(m=40)
    begun.do("prepare_run")
    others = ("api_", "help_document", "mail_confirm", "passkey_remove")
    signed_in = [
        reverse(name) for name, methods in test_access.SIGNED_IN.items()
        if "GET" in methods and not name.startswith(others)
    ]  # fmt: skip
    names = (
        "overview",
        "annotate",
        "items",
        "sources",
        "plan",
        "runs",
        "deliveries",
        "jobs",
        "import_upload",
    )
    wrong = []
    for user, addresses in (
        (world.manager, of_everything(arguments) + signed_in),
        (add_member(world.project, "annotator"), of_everything(arguments)),
        (empty.created_by, of(empty, *names)),
        (planned.manager, of(planned.project, *names)),
        (begun.manager, [*of(begun.project, *names), reverse("run", args=[begun.project.slug, 1])]),
    ):
        pages = dict(pages_of(user, addresses))
        for address, page in pages.items():
            if len(found := primary_buttons(page)) > 1:
                wrong.append(f"{address} has {len(found)} primary buttons: {found}")
            if ways := wrong_ways(address, page, [*pages]):
                wrong.append(f"{address} has wrong breadcrumbs: {ways}")
    assert not wrong, "\n".join(wrong)


def test_each_icon_that_is_shown_is_in_the_sprite_and_none_is_there_for_nothing() -> None:
    sprite = (settings.BASE_DIR / "static" / "icons.svg").read_text()
    templates = "".join(path.read_text() for path in (settings.BASE_DIR / "templates").rglob("*.html"))
    styles = "".join(path.read_text() for path in (settings.BASE_DIR / "static").glob("*.css"))
    shown = set(re.findall(r'{% icon "([^"]+)"', templates))
    masks = set(re.findall(r"icons\.svg#as-([a-z]+)", styles))
    assert masks == set(re.findall(r'view id="as-([a-z]+)"', sprite))
    assert shown | masks == set(re.findall(r'symbol id="([a-z]+)"', sprite))
