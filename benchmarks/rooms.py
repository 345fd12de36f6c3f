"""A picture of the rooms, the folders one level below annotation/ and routing/, and of who imports whom.

    .venv/bin/python benchmarks/rooms.py [--out docs/images/rooms.svg]

An arrow goes from a room to one that it imports from and is as wide as there are imports; a room stands above
all that it imports from, as there are no circles. Left out are imports for types alone, what lies in no room,
and Django's own folders. The same code gives the same file.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple
from xml.sax.saxutils import escape

from runner import ROOT, options_of

from testbed.imports import Module, edges_of, modules_of, room_imports

APPS = ("routing", "annotation")
NO_ROOMS = {"management", "migrations", "templatetags"}
WIDTH, MARGIN, BOX, TALL, GAP = 1200, 24, 136, 54, 78
COLOURS = {"routing": "#3b6ea5", "annotation": "#5a8f4e"}
Room = str  # "annotation.jobs"
Arrows = dict[tuple[Room, Room], int]


class Place(NamedTuple):
    """The left upper corner of a room's box."""

    x: float
    y: float


def is_drawn(room: Room) -> bool:
    return room.partition(".")[2] not in NO_ROOMS


def arrows_of(modules: dict[str, Module]) -> Arrows:
    """How many imports lead from one room to another, for each pair that is drawn."""
    found = room_imports(modules, edges_of(ROOT, APPS))
    return {pair: count for pair, count in found.items() if all(map(is_drawn, pair))}


def rows_of(rooms: Collection[Room], arrows: Arrows) -> Iterator[list[Room]]:
    """The rooms that import from none, then those that import from these, and so on."""
    down = {room: {end for start, end in arrows if start == room and end in rooms} for room in rooms}
    waiting = TopologicalSorter(down)
    waiting.prepare()
    while row := sorted(waiting.get_ready()):
        yield row
        waiting.done(*row)


def places_of(rows: Sequence[list[Room]], arrows: Arrows, top: float) -> dict[Room, Place]:
    """Boxes in rows, the lowest first; in a row each stands near those that it imports from."""
    places: dict[Room, Place] = {}

    def middle(room: Room) -> tuple[float, Room]:
        found = {end: n for (start, end), n in arrows.items() if start == room and end in places}
        total = sum(n * places[end].x for end, n in found.items())
        return total / sum(found.values()) if found else WIDTH / 2, room

    for layer, row in enumerate(rows):
        step = (WIDTH - 2 * MARGIN) / len(row)
        y = top + (len(rows) - 1 - layer) * (TALL + GAP)
        shift = step / 4 * (-1) ** layer if len(row) < 4 else 0  # so that long arrows pass beside boxes
        for number, room in enumerate(sorted(row, key=middle)):
            places[room] = Place(MARGIN + step * (number + 0.5) - BOX / 2 + shift, y)
    return places


def arrow(start: Place, end: Place, count: int, words: str, colour: str) -> str:
    """A curve from the lower edge of one box to the upper edge of another, with its number."""
    x1, y1, x2, y2 = start.x + BOX / 2, start.y + TALL, end.x + BOX / 2, end.y
    bend = (y2 - y1) * 0.45
    curve = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
    return (
        f'<path d="{curve}" fill="none" stroke="{colour}" stroke-opacity="0.5" '
        f'stroke-width="{0.8 + math.sqrt(count) / 2:.1f}" marker-end="url(#head)">'
        f"<title>{escape(words)}</title></path>"
    )


def text(x: float, y: float, words: str, **style: str) -> str:
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{given}>{escape(words)}</text>'


def box(room: Room, place: Place, lines: list[str]) -> str:
    """A room with its name, and lines about it."""
    x, y = place
    app, _, name = room.partition(".")
    middle = x + BOX / 2
    drawn = f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{TALL}" rx="7" fill="#ffffff" '
    drawn += f'stroke="{COLOURS[app]}" stroke-width="1.6"/>'
    drawn += text(middle, y + 19, name, font_weight="bold", font_size="14")
    for number, line in enumerate(lines):
        drawn += text(middle, y + 34 + 13 * number, line, font_size="10.5", fill="#555555")
    return drawn


def panel(app: str, top: float, arrows: Arrows, about: dict[Room, list[str]]) -> tuple[list[str], float]:
    """The rooms of an app with their arrows, and how high that is."""
    rows = list(rows_of(about, arrows))
    places = places_of(rows, arrows, top + 50)
    height = 70 + len(rows) * (TALL + GAP) - GAP
    colour = COLOURS[app]
    drawn = [
        f'<rect x="4" y="{top:.0f}" width="{WIDTH - 8}" height="{height:.0f}" rx="10" fill="{colour}" '
        'fill-opacity="0.08"/>',
        text(MARGIN, top + 28, f"{app}/", text_anchor="start", font_size="18", fill=colour),
    ]
    for (start, end), count in sorted(arrows.items()):
        if start in places and end in places:
            words = f"{start} imports {end}: {count}"
            drawn.append(arrow(places[start], places[end], count, words, colour))
    drawn += [box(room, place, about[room]) for room, place in sorted(places.items())]
    return drawn, height


def about_rooms(modules: dict[str, Module], arrows: Arrows) -> dict[Room, list[str]]:
    """What a box says of its room."""
    members: dict[Room, list[Module]] = defaultdict(list)
    for _name, module in sorted(modules.items()):
        if module.room and is_drawn(module.room):
            members[module.room].append(module)
    about = {}
    for room, found in members.items():
        lines = sum(module.source.count("\n") for module in found)
        about[room] = [f"{len(found)} files, {lines:,} lines"]
        into = {pair: count for pair, count in arrows.items() if pair[1] == room}
        if across := imports_across(into):
            about[room].append(f"{across} imports from {APPS[0]}")
    return about


def imports_across(arrows: Arrows) -> int:
    """How many of these imports lead from the first app to the second."""
    first, second = (f"{app}." for app in APPS)
    return sum(n for (a, b), n in arrows.items() if a.startswith(first) and b.startswith(second))


def picture(modules: dict[str, Module]) -> str:
    """The SVG."""
    arrows = arrows_of(modules)
    about = about_rooms(modules, arrows)
    first, second = ({room: about[room] for room in about if room.startswith(f"{app}.")} for app in APPS)
    upper, height = panel(APPS[0], 20, arrows, first)
    top = 20 + height + 56
    lower, further = panel(APPS[1], top, arrows, second)
    total = top + further + 20
    down = imports_across(arrows)
    between = [
        f'<path d="M{WIDTH // 2},{top - 52:.0f} v42" stroke="#444444" stroke-width="5" '
        'marker-end="url(#head)"/>',
        text(WIDTH / 2 + 16, top - 24, f"{down} imports", text_anchor="start", font_size="13"),
    ]
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:.0f}" '
        'font-family="sans-serif" text-anchor="middle">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#444444"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{total:.0f}" fill="#ffffff"/>',
    ]
    return "\n".join([*head, *upper, *between, *lower, "</svg>", ""])


def main() -> None:
    options = options_of(__doc__, out=(ROOT / "docs" / "images" / "rooms.svg", "the picture"))
    options.out.write_text(picture(modules_of(ROOT, APPS)), encoding="utf-8")


if __name__ == "__main__":
    main()
