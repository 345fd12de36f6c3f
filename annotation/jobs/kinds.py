"""The kinds of jobs that there are: who does each, what it is called, how it stops."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import HypacError
from annotation.jobs.context import JobContext
from annotation.models import Job

Handler = Callable[[JobContext], dict[str, Any] | None]


@dataclass(frozen=True)
class Kind:
    """`queue_of` names the Celery queue whose workers can do a job; `can_pause`: its handler looks at
    `JobContext.pausing`; `stops_itself`: so it does, or it is quickly done (see JobContext). `copies_items`:
    it reads what items are and stores it elsewhere at its end; `by_looks`: looking at pages begins it, so
    that it hinders nothing. `finished` has job and result in the transaction of its end; `is_news`: whether
    anybody is told of that, by its result.
    """

    name: str
    # Marked by gettext_noop: pages show it in the language of the reader.
    title: str
    handler: Handler
    queue_of: Callable[[Job], str]
    can_pause: bool = False
    stops_itself: bool = False
    copies_items: bool = False
    by_looks: bool = False
    finished: Callable[[Job, dict[str, Any]], None] | None = None
    is_news: Callable[[dict[str, Any]], bool] = lambda result: True


KINDS: dict[str, Kind] = {}


def register(
    name: str,
    handler: Handler,
    *,
    title: str,
    queue: str | Callable[[Job], str] = "default",
    can_pause: bool = False,
    stops_itself: bool = False,
    copies_items: bool = False,
    by_looks: bool = False,
    finished: Callable[[Job, dict[str, Any]], None] | None = None,
    is_news: Callable[[dict[str, Any]], bool] = lambda result: True,
) -> None:
    """Make a kind of job known. `queue` is the Celery queue whose workers can do it, or tells it of a job."""
    queue_of = queue if callable(queue) else lambda _job: queue
    stops_itself = can_pause or stops_itself
    KINDS[name] = Kind(
        name, title, handler, queue_of, can_pause, stops_itself, copies_items, by_looks, finished, is_news
    )


def kind(name: str) -> Kind:
    try:
        return KINDS[name]
    except KeyError:
        raise HypacError(
            _("There is no job of kind %(name)r; known are %(names)s.")
            % {"name": name, "names": ", ".join(sorted(KINDS))}
        ) from None


def copying_items() -> list[str]:
    """Kinds of jobs after whose beginning an item that is erased may come back elsewhere."""
    return [name for name, one in KINDS.items() if one.copies_items]


def on_demand_kinds() -> list[str]:
    """Kinds of jobs that look after what a page lacks: archiving and export do not wait for them."""
    return [name for name, one in KINDS.items() if one.by_looks]


def can_pause(name: str) -> bool:
    """Whether jobs of this kind can be paused; not of one that this version does not know."""
    return name in KINDS and KINDS[name].can_pause
