"""Filters of the table of items on a command line."""

from argparse import ArgumentParser
from collections.abc import Sequence

from django.core.management.base import CommandError


def add_filters(parser: ArgumentParser) -> None:
    """The argument whose values `filters_of` reads."""
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only what this filter of the table of items finds; several times for several",
    )


def filters_of(texts: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, each name once. Raises CommandError otherwise."""
    filters: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise CommandError(f"--filter: {text!r} is not of the form NAME=VALUE.")
        if name in filters:
            raise CommandError(f"--filter: {name} is there twice; an item has to match all of them.")
        filters[name] = value
    return filters
