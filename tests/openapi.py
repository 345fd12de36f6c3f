"""The API's schema, for what is made from it and held against it."""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import django


def generator() -> Any:
    import_module("hypac_site.urls")  # views cannot be imported where the generator comes first
    from drf_spectacular.generators import SchemaGenerator

    return SchemaGenerator()


def write(file: Path, made: Callable[[Any], str]) -> None:
    """What a command does: `made` of the schema goes into the file."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
    django.setup()
    file.write_text(made(generator().get_schema(public=True)))
