"""docs/compose/compose.yaml of a checkout, as Docker Compose would read it."""

import re
from pathlib import Path
from typing import Any

import yaml

# Keys of the tests' own; all else has its default, or is empty.
KEYS = {
    "POSTGRES_PASSWORD": "",
    "DJANGO_SECRET_KEY": "only-for-tests-" + "0123456789" * 5,
    "HYPAC_ENCRYPTION_KEYS": "only-for-tests-01234567890123456789_abcdefg" + "=",
}


def services(root: Path) -> dict[str, dict[str, Any]]:
    loaded = yaml.safe_load((root / "docs/compose/compose.yaml").read_text())
    found: dict[str, dict[str, Any]] = loaded["services"]
    return found


def filled_in(text: str, values: dict[str, str]) -> str:
    """With variables from `values`, else with the defaults that stand behind `:-`."""
    return re.sub(
        r"\$\{(\w+)(?::([-?])([^}]*))?\}",
        lambda found: values.get(found[1], found[3] if found[2] == "-" else ""),
        text,
    )


def environment(service: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    return {name: filled_in(str(value), values) for name, value in service["environment"].items()}
