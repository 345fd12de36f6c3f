"""The backend of a stored source, with what it has to know of its project."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from annotation.models import Project
from annotation.outside.secrets import decrypt
from routing.models import FrozenSource, PromptCandidate, PromptVersion, Source
from routing.sources.backends import Backend, Example, Prompt, SourceContext, TaskSpec, open_backend
from routing.sources.backends.llm import SAMPLING
from routing.sources.mends import mends_of, with_mends


def backend_for(source: Source) -> Backend:
    """The source's backend, opened with its prompt in force and its key. Raises InputError where its params
    or its key can no longer be used.
    """
    return open_backend(source.backend, source.params, context_of(source))


def fingerprint_of(source: Source) -> str:
    """Fingerprint under which the source would answer at this moment, as its answers are read now."""
    return with_mends(backend_for(source).fingerprint(), mends_of(source))


def frozen_backend(frozen: FrozenSource) -> Backend:
    """What answers for it: its source, and of a candidate the source asked in the candidate's way."""
    if not isinstance(frozen, PromptCandidate):
        return backend_for(frozen.source)
    context = replace(context_of(frozen.source), prompt=prompt_of(frozen))
    return open_backend(frozen.source.backend, params_of(frozen), context)


def frozen_fingerprint(frozen: FrozenSource) -> str:
    """Fingerprint under which that would answer at this moment."""
    return with_mends(frozen_backend(frozen).fingerprint(), mends_of(frozen.source))


def params_of(candidate: PromptCandidate) -> dict[str, Any]:
    """Those of the source, and of how the model writes those of the candidate."""
    written = how_it_writes(candidate.source.params)
    others = {name: value for name, value in candidate.source.params.items() if name not in written}
    return {**others, **candidate.params}


def how_it_writes(params: Mapping[str, Any]) -> dict[str, Any]:
    """Of the params of a source those that a candidate has of its own."""
    names = {param.name for param in SAMPLING}
    return {name: value for name, value in params.items() if name in names}


def context_of(source: Source) -> SourceContext:
    return SourceContext(
        task=task_spec(source.project),
        prompt=current_prompt(source),
        api_key=decrypt(source.api_key, where="api_key"),
        served=source.served,
        source=source.pk,
    )


def task_spec(project: Project) -> TaskSpec:
    return TaskSpec(
        task_type=project.task_type,
        choices=tuple(project.choices.order_by("position").values_list("key", "name")),
        guidelines=project.guidelines,
        columns=tuple(project.columns),
    )


def current_prompt(source: Source) -> Prompt | None:
    """The newest version of the source's prompt, if it has one."""
    version = source.prompt_versions.order_by("-number").first() if source.pk else None
    return None if version is None else prompt_of(version)


def prompt_of(version: PromptVersion | PromptCandidate) -> Prompt:
    return Prompt(
        template=version.template,
        system=version.system,
        examples=tuple(Example(entry["fields"], entry["answer"]) for entry in version.examples),
        number=version.number,
    )
