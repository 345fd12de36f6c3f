"""What a demonstration is made of: a project, its models, a plan, and data whose truth is known."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from annotation.imports.columns import ColumnMapping as Columns
from annotation.projects.choices import ChoiceSpec
from routing.sources.backends import Prompt


@dataclass(frozen=True, kw_only=True)
class Pool:
    """`file` is what is imported. `truth_file`, which HyPAC never sees, is a JSON object from `content_key`
    to the right label, for the simulated people and the summary. `models` is said of the models at the start,
    `alone` how many labels each of them would get wrong, as far as that is known without HyPAC.
    """

    file: Path
    media_type: str
    columns: Columns
    truth_file: Path
    size: int
    models: list[str] = field(default_factory=list)
    alone: str = ""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A source. `price` names a line of the scene's price list; without one each label costs `cost`."""

    name: str
    backend: str
    params: Mapping[str, Any]
    cost: Decimal
    price: str = ""
    prompt: Prompt | None = None


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`prices` is the price list: name of a line, then cost function and prices. `plan` is what `start_run`
    takes. `make_pool` writes the data into a folder, or finds there what it wrote before. What comes of the
    scene goes to the subfolder `folder`. `expert` is the account of who is right, if not everybody is.
    """

    title: str
    command: str
    name: str
    slug: str
    guidelines: str
    currency: str
    human_cost: Decimal
    models: tuple[Model, ...]
    plan: Mapping[str, Any]
    make_pool: Callable[[Path], Pool]
    task_type: str = "single_choice"
    choices: tuple[ChoiceSpec, ...] = ()
    prices: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    tries_models: bool = False
    folder: str = ""
    expert: str = ""


def content_key(content: bytes) -> str:
    """The name of an item in the file of truths: what is shown of it, hashed."""
    return hashlib.sha256(content).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """All or nothing, so that an interrupted set-up leaves no half file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
