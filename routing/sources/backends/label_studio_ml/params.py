"""The params of a source of this kind."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from routing.sources.backends.label_studio_ml.label_config import LabelConfig, label_config
from routing.sources.backends.params import (
    BATCH_SIZE,
    CONCURRENCY,
    CONNECT_TIMEOUT,
    KEY,
    READ_TIMEOUT,
    TOTAL_TIMEOUT,
    URL,
    Param,
    Text,
    read_values,
)
from routing.sources.source_context import TaskSpec

DAY = 86_400
PARAMS: tuple[Param, ...] = (
    URL,
    KEY,
    Text(
        "label_config",
        _("Labelling configuration"),
        _("The XML that the backend is set up with. Empty: made from the labels of the project."),
        lines=5,
        most=20_000,
    ),
    replace(CONCURRENCY, high=64, default=2),
    replace(BATCH_SIZE, high=500, default=16),
    replace(CONNECT_TIMEOUT, high=3_600),
    replace(READ_TIMEOUT, low=1, high=DAY),
    replace(TOTAL_TIMEOUT, low=1, high=DAY, default=120.0),
)


@dataclass(frozen=True)
class Params:
    """`url` has no slash at its end. Times are in seconds and of a request, which is for a whole batch: to
    connect, without a sign of life, and in all."""

    url: str
    config: LabelConfig
    batch_size: int
    concurrency: int
    connect_timeout: float
    read_timeout: float
    total_timeout: float


def read_params(params: Mapping[str, Any], task: TaskSpec) -> Params:
    """Raises InputError naming the param."""
    values = read_values(PARAMS, params)
    return Params(
        url=values["url"].rstrip("/"),
        config=label_config(task, values["label_config"]),
        batch_size=values["batch_size"],
        concurrency=values["concurrency"],
        connect_timeout=values["connect_timeout"],
        # Most servers are silent until they are through with the whole batch.
        read_timeout=values["read_timeout"] or values["total_timeout"],
        total_timeout=values["total_timeout"],
    )
