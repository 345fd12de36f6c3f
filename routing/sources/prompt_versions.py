"""The prompts of sources: versions, and how one would look filled in."""

from collections.abc import Sequence
from dataclasses import replace

from django.utils.translation import gettext as _

from annotation.common import limits
from annotation.errors import InputError
from annotation.models import Item, Project, User
from routing.common.states import BUSY, State
from routing.models import PromptVersion, Run, RunSource, Source
from routing.sources.backend_for import current_prompt, task_spec
from routing.sources.backends import Prompt, backends_that
from routing.sources.hidden_columns import columns_hidden_now
from routing.sources.prompts import Messages, check_prompt, default_prompt, prompt_digest, render

HIDDEN = "[hidden until the run is analysed]"


def takes_prompt() -> frozenset[str]:
    """Backends that are asked with a prompt."""
    return backends_that(lambda backend: backend.prompted)


def checked_prompt(project: Project, backend: str, prompt: Prompt | None) -> Prompt | None:
    """The prompt as it can be stored. Raises InputError, `where` being the part that cannot be used."""
    if prompt is None:
        return None
    if backend not in takes_prompt():
        raise InputError(
            _("A source of the kind %(backend)s is asked without a prompt.") % {"backend": backend},
            where="prompt",
        )
    prompt = replace(prompt, system=_lines(prompt.system), template=_lines(prompt.template))
    check_prompt(prompt, task_spec(project))
    return prompt


def is_new_version(source: Source | None, prompt: Prompt) -> bool:
    """Whether the source is asked otherwise until now."""
    current = current_prompt(source) if source is not None and source.pk else None
    return current is None or replace(prompt, number=0) != replace(current, number=0)


def add_version(*, source: Source, user: User, prompt: Prompt) -> PromptVersion:
    """Store the prompt as the newest version. Call it in the transaction that holds the project's lock."""
    last = source.prompt_versions.order_by("-number").values_list("number", flat=True).first() or 0
    return PromptVersion.objects.create(
        source=source,
        number=last + 1,
        system=prompt.system,
        template=prompt.template,
        examples=[{"fields": dict(entry.fields), "answer": entry.answer} for entry in prompt.examples],
        created_by=user,
    )


def source_asked_otherwise(
    project: Project, *, guidelines: str | None = None, choices: Sequence[tuple[str, str]] | None = None
) -> tuple[Run, Source] | None:
    """A run whose models may still be called, and one of its sources whose prompt would be another with these
    guidelines or choices; None where there is none.
    """
    now = task_spec(project)
    then = replace(
        now,
        guidelines=now.guidelines if guidelines is None else guidelines,
        choices=now.choices if choices is None else tuple(choices),
    )
    rows = RunSource.objects.filter(
        run__project=project, run__state__in=(*BUSY, State.ANALYSED), source__backend__in=takes_prompt()
    )
    for row in rows.select_related("run", "source").order_by("run_id", "position"):
        prompt = current_prompt(row.source)
        if prompt_digest(prompt, now) != prompt_digest(prompt, then):
            return row.run, row.source
    return None


def prompt_in_force(source: Source) -> Prompt:
    """The newest version, or the default of the task type, whose number is 0."""
    return current_prompt(source) or default_prompt(task_spec(source.project))


def shown_to_model(project: Project, prompt: Prompt, item: Item) -> Messages:
    """What is sent for `item`, as it may be shown: without columns that nobody may see now, and of
    what is long the beginning.

    Raises InputError where the item cannot be sent at all.
    """
    hidden = columns_hidden_now(project)
    data = {name: HIDDEN if name in hidden else _cut(value) for name, value in item.data.items()}
    shown = Item(external_id=item.external_id, text=_cut(item.text), image_id=item.image_id, data=data)
    return render(prompt, task_spec(project), shown)


def _cut(text: str) -> str:
    """A page need not show more of it, and a template may name it often."""
    return text if len(text) <= limits.LONG_TEXT else f"{text[: limits.LONG_TEXT]}…"


def _lines(text: str) -> str:
    """As browsers send it, with one kind of line end and nothing around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
