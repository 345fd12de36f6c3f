"""Bringing data in: choose a file, look at its first rows, say which column is what, start."""

import io
from typing import IO

from django.contrib import messages
from django.core.files.base import File
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.errors import HypacError
from annotation.hooks import hidden_columns
from annotation.models import StoredFile
from annotation.services.files import store_file
from annotation.services.imports import preview, start_import
from annotation.views.access import ProjectRequest, needs, takes_files
from annotation.views.forms import add_error
from annotation.views.import_forms import MappingForm, UploadForm

RECENT = 5


@takes_files
@needs("items.import", "GET", "POST")
def import_upload(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        content, name, media_type = _content(form)
        try:
            stored = store_file(project=project, content=content, original_name=name, media_type=media_type)
            preview(stored_file=stored, rows=1)
        except HypacError as error:
            _add_file_error(form, error, name)
        else:
            return redirect("import_mapping", project.slug, stored.pk)
    return render(
        request,
        "annotation/import_upload.html",
        {
            "form": form,
            "step": "import",
            "item_count": project.items.count(),
            "imports": project.jobs.filter(kind="import").order_by("-id")[:RECENT],
        },
    )


@needs("items.import", "GET", "POST")
def import_mapping(request: ProjectRequest, file_id: int) -> HttpResponseBase:
    project = request.access.project
    stored = get_object_or_404(StoredFile, project=project, pk=file_id)
    try:
        look = preview(stored_file=stored)
    except HypacError as error:
        messages.error(request, str(error))
        return redirect("import_upload", project.slug)
    # A file that was imported can be looked at again, with the answers of models in it.
    hidden = hidden_columns(project)
    rows = [
        {name: _("(not shown now)") if name in hidden else row[name] for name in row} for row in look.rows
    ]
    form = MappingForm(
        request.POST or None,
        columns=look.columns,
        images=look.holds_images,
        initial={"id_column": look.suggestion.id_column, "text_column": look.suggestion.text_column},
    )
    if request.method == "POST" and form.is_valid():
        try:
            job = start_import(project=project, user=request.user, stored_file=stored, mapping=form.mapping())
        except HypacError as error:
            add_error(form, error)
        else:
            return redirect("job", project.slug, job.pk)
    return render(
        request,
        "annotation/import_mapping.html",
        {"form": form, "look": look, "rows": rows, "file": stored, "step": "import"},
    )


def _add_file_error(form: UploadForm, error: HypacError, name: str) -> None:
    """Above the form, with the line or the part of the file; its name alone would say nothing new."""
    form.add_error(None, error.message if error.where in ("file", name) else str(error))


def _content(form: UploadForm) -> tuple[IO[bytes], str, str]:
    if file := form.cleaned_data["file"]:
        return file, file.name, file.content_type or ""
    text = form.cleaned_data["text"].strip("\r\n").replace("\r\n", "\n") + "\n"
    name = "pasted.jsonl" if text.lstrip().startswith("{") else "pasted.csv"
    if name == "pasted.csv" and "\t" in text.splitlines()[0]:
        name = "pasted.tsv"
    return File(io.BytesIO(text.encode())), name, "text/plain"
