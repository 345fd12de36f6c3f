"""The backend of a stored source, with what it has to know of its project."""

from annotation.models import Project
from annotation.outside.secrets import decrypt
from routing.models import PromptVersion, Source
from routing.sources.backends import Backend, Example, Prompt, SourceContext, TaskSpec, open_backend
from routing.sources.mends import mends_of, with_mends


def backend_for(source: Source) -> Backend:
    """The source's backend, opened with its prompt in force and its key. Raises InputError where its params
    or its key can no longer be used.
    """
    return open_backend(source.backend, source.params, context_of(source))


def fingerprint_of(source: Source) -> str:
    """Fingerprint under which the source would answer at this moment, as its answers are read now."""
    return with_mends(backend_for(source).fingerprint(), mends_of(source))


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


def prompt_of(version: PromptVersion) -> Prompt:
    return Prompt(
        template=version.template,
        system=version.system,
        examples=tuple(Example(entry["fields"], entry["answer"]) for entry in version.examples),
        number=version.number,
    )
