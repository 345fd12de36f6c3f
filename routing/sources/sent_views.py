"""The page on which what a model answered elsewhere is sent in."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, takes_files
from annotation.common.forms import add_error, kept_file
from annotation.errors import HypacError
from annotation.imports.allowance import one_look
from annotation.imports.encodings import ENCODINGS, EncodingNeededError, Offer
from annotation.imports.sent_files import sent_as_answers
from annotation.models import Job
from routing.models import Source
from routing.sources.backends.uploaded.lines import OPENAI_BATCH, PREDICTIONS
from routing.sources.seen_answers import quoted_bases
from routing.sources.sent_answers import KIND, send_answers, sent_so_far, store_answers_file, takes_answers
from routing.sources.sent_reading import TABLE
from routing.sources.sent_words import refused_words

RECENT = 5
ENDINGS = ".jsonl,.ndjson,.json,.txt,.csv,.tsv,.xlsx,.xls,.ods,.parquet,.gz"


class PredictionsForm(forms.Form):
    file = forms.FileField(label=gettext_lazy("File"), widget=forms.FileInput(attrs={"accept": ENDINGS}))
    format = forms.ChoiceField(
        label=gettext_lazy("What it is"),
        required=False,
        choices=(
            ("", gettext_lazy("As the file itself tells")),
            (PREDICTIONS, gettext_lazy("Predictions, one JSON object a line")),
            (TABLE, gettext_lazy("A table: CSV, TSV, Excel, a JSON list or Parquet")),
            (OPENAI_BATCH, gettext_lazy("Output of an OpenAI batch")),
        ),
    )
    encoding = forms.ChoiceField(label=gettext_lazy("Encoding"), required=False)

    def __init__(self, *args: Any, kept: bool = False, **kwargs: Any) -> None:
        """`kept`: a file that was sent before is used where no other one is chosen."""
        super().__init__(*args, **kwargs)
        self.fields["file"].required = not kept
        known = [(name, _(one.title)) for name, one in ENCODINGS.items()]
        choices = [("", _("As the file itself says: UTF-8, or UTF-16 with its mark")), *known]
        self.fields["encoding"].choices = choices  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file and file.size > settings.HYPAC_MAX_UPLOAD_BYTES:
            raise forms.ValidationError(
                gettext_lazy("The file is larger than this server accepts. Split it.")
            )
        return file


@takes_files
@needs("sources.edit", "GET", "POST")
@one_look()
def source_predictions(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """How many answers are there; a POST takes in a file of them."""
    project = request.access.project
    source = get_object_or_404(Source.objects.select_related("project"), project=project, pk=source_id)
    if not takes_answers(source):
        raise Http404
    kept = kept_file(request, sent_as_answers(project))
    # Somebody else may have sent it: its words are told to whoever has it, and chose it now.
    quotes = kept is None or "sent" in quoted_bases(project)
    offers: list[Offer] = []
    form = PredictionsForm(request.POST or None, request.FILES or None, kept=kept is not None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            stored = kept = kept or store_answers_file(project=project, content=file, name=file.name)
            job = send_answers(
                source=source,
                user=request.user,
                stored_file=stored,
                format_name=form.cleaned_data["format"],
                encoding=form.cleaned_data["encoding"],
                quotes=quotes,
            )
        except EncodingNeededError as error:
            offers = error.offers
            asked = _("This text is not UTF-8. Say below which encoding it is in.")
            form.add_error("encoding", asked if offers else error.message)
        except HypacError as error:
            add_error(form, error)
            if error.where not in ("", "format", "encoding"):
                kept = None  # another one is needed
        else:
            return redirect("job", project.slug, job.pk)
    return render(
        request,
        "routing/sources/predictions.html",
        {
            "source": source,
            "form": form,
            "kept": kept,
            "sent": sent_so_far(source),
            "offers": offers,
            "jobs": _jobs(source),
            "refused": refused_words(source),
            "step": "sources",
        },
    )


def _jobs(source: Source) -> list[tuple[Job, str]]:
    """The last jobs that took in a file for the source, each with the name of its file."""
    found = source.project.jobs.filter(kind=KIND, unique_key=f"{KIND}:{source.pk}").order_by("-id")[:RECENT]
    numbers = [job.params["file"] for job in found]
    names = dict(source.project.files.filter(pk__in=numbers).values_list("pk", "original_name"))
    return [(job, names.get(job.params["file"], "")) for job in found]
