"""The part of /api/v1/ about prompts of language models, their presets, and trying a source."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView, ProjectView
from annotation.common.api.schema import Nothing, list_of
from annotation.errors import InputError
from annotation.jobs.serializers import JobBody, accepted
from annotation.models import User
from routing.models import Source
from routing.sources.backends import Example, Prompt
from routing.sources.prompt_versions import prompt_in_force, takes_prompt
from routing.sources.prompts import PRESETS
from routing.sources.trials import newest_try, start_try

PARTS = ("system", "template", "examples")


def prompt_from(sent: Any) -> Prompt | None:
    """The prompt in the body of a request; None where none was sent. Raises InputError where it is none."""
    if sent is None:
        return None
    if not isinstance(sent, Mapping) or set(sent) - {*PARTS, "number"}:
        raise InputError(f"A prompt is an object with {', '.join(PARTS)}.", where="prompt")
    system, template, examples = sent.get("system", ""), sent.get("template", ""), sent.get("examples", [])
    if not isinstance(system, str) or not isinstance(template, str) or not isinstance(examples, list):
        raise InputError("Its system message and template are text, its examples a list.", where="prompt")
    return Prompt(
        template, system, tuple(_example(number, entry) for number, entry in enumerate(examples, 1))
    )


def prompt_content(source: Source) -> dict[str, Any] | None:
    """The prompt in force; its number is 0 where it is the default of the task type."""
    return _content(prompt_in_force(source)) if source.backend in takes_prompt() else None


class ExampleBody(serializers.Serializer[Any]):
    fields = serializers.DictField(child=serializers.CharField(allow_blank=True))  # type: ignore[assignment]
    answer = serializers.CharField(allow_blank=True)


class PromptBody(serializers.Serializer[Any]):
    """`number` is 0 where it is the default of the task type."""

    number = serializers.IntegerField(required=False)
    system = serializers.CharField(allow_blank=True)
    template = serializers.CharField(allow_blank=True)
    examples = ExampleBody(many=True)


class PromptVersionBody(PromptBody):
    number = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class TryJob(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    state = serializers.CharField()
    error = serializers.CharField(allow_blank=True)


class TryBody(serializers.Serializer[Any]):
    """What came of the newest try; `rows` is null while there is none that may be shown."""

    job = TryJob(allow_null=True)
    hidden = serializers.BooleanField()
    mean_cost = serializers.CharField(allow_null=True)
    rows = serializers.ListField(child=serializers.DictField(), allow_null=True)


class TriedJob(JobBody):
    job = serializers.IntegerField(help_text="The same as `id`.")


class PresetBody(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    params = serializers.DictField()
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]


class SourceView(ProjectView):
    def find(self, source_id: int) -> Source:
        found = Source.objects.select_related("project").filter(project=self.access.project, pk=source_id)
        if (source := found.first()) is None:
            raise Http404
        return source


class SourcePrompts(SourceView):
    actions = {"GET": "sources.edit"}

    @extend_schema(responses=list_of(PromptVersionBody))
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """Every version, the newest first."""
        versions = self.find(source_id).prompt_versions.order_by("-number")
        names = ("number", "system", "template", "examples", "created_at")
        return Response({"results": list(versions.values(*names))})


class SourceTries(SourceView):
    actions = {"GET": "sources.edit", "POST": "sources.edit"}

    @extend_schema(responses=TryBody)
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """What came of the newest try; `rows` is null while there is none that may be shown."""
        shown = newest_try(self.find(source_id))
        job = shown.job
        return Response(
            {
                "job": None if job is None else {"id": job.pk, "state": job.state, "error": job.error},
                "hidden": shown.hidden,
                "mean_cost": shown.mean_cost,
                "rows": shown.tried.rows if shown.tried else None,
            }
        )

    @extend_schema(request=Nothing, responses={202: TriedJob})
    def post(self, request: Request, slug: str, source_id: int) -> Response:
        """Have a worker ask the source about a few items."""
        self.parsed(Nothing)
        job = start_try(source=self.find(source_id), user=cast(User, request.user))
        response = accepted(job)
        response.data = {**response.data, "job": job.pk}
        return response


class ModelPresets(ApiView):
    @extend_schema(responses=list_of(PresetBody))
    def get(self, request: Request) -> Response:
        """Sampling settings that makers of models recommend."""
        return Response({"results": [asdict(preset) for preset in PRESETS.values()]})


def _example(number: int, entry: Any) -> Example:
    fields = entry.get("fields") if isinstance(entry, Mapping) else None
    answer = entry.get("answer") if isinstance(entry, Mapping) else None
    named = isinstance(fields, Mapping) and all(isinstance(value, str) for value in fields.values())
    if not named or not isinstance(answer, str) or set(entry) != {"fields", "answer"}:
        raise InputError(
            f'Example {number} must be {{"fields": {{name: text}}, "answer": text}}.', where="prompt"
        )
    return Example(dict(cast(Mapping[str, str], fields)), answer)


def _content(prompt: Prompt) -> dict[str, Any]:
    return {
        "number": prompt.number,
        "system": prompt.system,
        "template": prompt.template,
        "examples": [{"fields": dict(entry.fields), "answer": entry.answer} for entry in prompt.examples],
    }


_ONE = "projects/<slug:slug>/sources/<row:source_id>/"
urlpatterns = [
    path(f"{_ONE}prompts/", SourcePrompts.as_view(), name="api_source_prompts"),
    path(f"{_ONE}try/", SourceTries.as_view(), name="api_source_try"),
    path("model-presets/", ModelPresets.as_view(), name="api_model_presets"),
]
