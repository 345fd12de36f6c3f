"""Every command that a page, a document or a file of ours names is there."""

import importlib.util
import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "clients/python/*.md", "templates/**/*.html")
CODE = ("annotation/**/*.py", "hypac_site/**/*.py", "routing/**/*.py")
# Of other programs, which stand in their own documentation and not in ours.
OTHERS = {"pip", "venv", "vllm", "llama_cpp", "http", "pytest", "build", "json", "celery"}
MODULE = re.compile(r"python3? -m ([A-Za-z_][\w.]*\w)")
COMMAND = re.compile(r"manage\.py ([a-z][a-z_]*)\b(?! (?:command|that|has))")
PROGRAM = re.compile(r"the program ([a-z]+_[a-z_]+)\b")


def named(pattern: re.Pattern[str]) -> dict[str, str]:
    """What is named -> a file that names it."""
    files = [path for glob in (*PLACES, *CODE) for path in sorted(ROOT.glob(glob))]
    return {
        found: str(path.relative_to(ROOT))
        for path in files
        for found in pattern.findall(path.read_text(encoding="utf-8"))
    }


def runs(module: str) -> bool:
    """Whether `python -m module` finds something to run."""
    if module.split(".")[0] in OTHERS:
        return True
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError:
        return False
    return spec is not None


def test_modules_that_are_named_can_be_run() -> None:
    modules = named(MODULE)
    assert "routing.core.verify" in modules
    assert {name: place for name, place in modules.items() if not runs(name)} == {}


def test_commands_that_are_named_are_there() -> None:
    commands = named(COMMAND)
    assert "deliver" in commands
    assert {name: place for name, place in commands.items() if name not in get_commands()} == {}


@pytest.mark.parametrize("place", ["templates", "routing", "annotation"])
def test_no_page_names_a_program_by_a_name_that_nobody_can_start(place: str) -> None:
    assert {name: at for name, at in named(PROGRAM).items() if at.startswith(place)} == {}
