"""The params of a source of this kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.net import check_url
from routing.backends.base import refuse_unknown, text_param
from routing.backends.context import TaskSpec
from routing.backends.label_studio_ml.label_config import LabelConfig, label_config
from routing.backends.llm.params import number, whole

PARAMS = (
    "url",
    "label_config",
    "batch_size",
    "concurrency",
    "connect_timeout",
    "read_timeout",
    "total_timeout",
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
    given = dict(params)
    refuse_unknown(given, PARAMS)
    total = number(given, "total_timeout", 1, 86_400) or 120.0
    return Params(
        url=check_url(text_param(given, "url", required=True), where="url").rstrip("/"),
        config=label_config(task, text_param(given, "label_config")),
        batch_size=whole(given, "batch_size", 1, 500) or 16,
        concurrency=whole(given, "concurrency", 1, 64) or 2,
        connect_timeout=number(given, "connect_timeout", 0.1, 3_600) or 5.0,
        # Most servers are silent until they are through with the whole batch.
        read_timeout=number(given, "read_timeout", 1, 86_400) or total,
        total_timeout=total,
    )
