"""Sending in what a model answered elsewhere, as a file."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _

from annotation.common.access import ProjectRequest, needs, takes_files
from annotation.common.forms import add_error
from annotation.errors import HypacError
from routing.models import Source
from routing.sources.backends.uploaded.lines import OPENAI_BATCH, PREDICTIONS
from routing.sources.sent_answers import KIND, send_answers, sent_so_far, store_answers_file, takes_answers

RECENT = 5


class PredictionsForm(forms.Form):
    file = forms.FileField(
        label=_("File"), widget=forms.FileInput(attrs={"accept": ".jsonl,.ndjson,.json,.txt"})
    )
    format = forms.ChoiceField(
        label=_("What its lines are"),
        required=False,
        choices=(
            ("", _("As the lines themselves tell")),
            (PREDICTIONS, _("Predictions, one JSON object a line")),
            (OPENAI_BATCH, _("Output of an OpenAI batch")),
        ),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > settings.HYPAC_MAX_UPLOAD_BYTES:
            raise forms.ValidationError(_("The file is larger than this server accepts. Split it."))
        return file


@takes_files
@needs("sources.edit", "GET", "POST")
def source_predictions(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """How many answers are there; a POST takes in a file of them."""
    project = request.access.project
    source = get_object_or_404(Source.objects.select_related("project"), project=project, pk=source_id)
    if not takes_answers(source):
        raise Http404
    form = PredictionsForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            stored = store_answers_file(project=project, content=file, name=file.name)
            job = send_answers(
                source=source,
                user=request.user,
                stored_file=stored,
                format_name=form.cleaned_data["format"],
            )
        except HypacError as error:
            add_error(form, error)
        else:
            return redirect("job", project.slug, job.pk)
    return render(
        request,
        "routing/sources/predictions.html",
        {
            "source": source,
            "form": form,
            "sent": sent_so_far(source),
            "jobs": project.jobs.filter(kind=KIND, unique_key=f"{KIND}:{source.pk}").order_by("-id")[:RECENT],
            "step": "sources",
        },
    )
