"""Bringing data in: choose a file, look at its first rows, say which column is what, start."""

import hashlib
import io
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.files.base import File
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages, takes_files
from annotation.common.files import MODEL_OUTPUT, store_file
from annotation.common.forms import add_error, kept_file
from annotation.errors import HypacError, InputError
from annotation.imports.allowance import one_look
from annotation.imports.check import Check, check_import, duplication_warning
from annotation.imports.columns import ColumnMapping
from annotation.imports.encodings import (
    ENCODINGS,
    UTF8,
    EncodingNeededError,
    Offer,
    encoding_of,
    offers_for,
)
from annotation.imports.formats.detect import detect
from annotation.imports.formats.excel import NAME as EXCEL
from annotation.imports.formats.registry import IMPORTERS, formats_with_labels, text_formats
from annotation.imports.forms import MappingForm, UploadForm
from annotation.imports.other_kind import is_other_kind
from annotation.imports.sent_files import keep_for_import
from annotation.imports.undo import start_undo
from annotation.imports.upload import Preview, check_mapping, may_change_text_format, preview, start_import
from annotation.models import Job, Project, StoredFile
from annotation.ports import routing_port
from annotation.words import for_reader

RECENT = 5
SENT = "import_file"
"""In a session: the file that was sent last."""
ASK = "ask"
"""In place of an encoding: which ones are possible, and what the file reads like then."""


@takes_files
@needs("items.import", "GET", "POST")
@one_look()
def import_upload(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    kept = kept_file(request, project.files.exclude(media_type=MODEL_OUTPUT))
    form = UploadForm(request.POST or None, request.FILES or None, kept=kept is not None)
    if form.is_bound:
        is_valid, name = form.is_valid(), ""
        try:
            if sent := form.cleaned_data.get("file"):
                name, media_type = sent.name, sent.content_type or ""
                kept = keep_for_import(
                    project=project, content=sent, original_name=name, media_type=media_type
                )
            if is_valid:
                stored = kept or _pasted(project, form.cleaned_data["text"])
                name = stored.original_name
                with suppress(EncodingNeededError):  # the next page asks for it
                    preview(stored_file=stored, rows=1)
        except HypacError as error:
            _add_file_error(form, error, name)
            kept = None
        else:
            if is_valid:
                page = reverse("import_mapping", args=[project.slug, stored.pk])
                request.session[SENT] = stored.pk
                return HttpResponseClientRedirect(page) if request.htmx else redirect(page)
    return render(
        request,
        "annotation/imports/import_upload.html",
        {
            "form": form,
            "kept": kept,
            "sent": _sent(request) if request.method == "GET" else None,
            "step": "import",
            "item_count": project.items.count(),
            "imports": project.jobs.filter(kind="import").order_by("-id")[:RECENT],
            "most_bytes": settings.HYPAC_MAX_UPLOAD_BYTES,
            "connections": project.connections.order_by("name"),
        },
    )


@needs("items.import", "GET", "POST")
@one_look()
def import_mapping(request: ProjectRequest, file_id: int) -> HttpResponseBase:
    """A POST with `do`, or by htmx, changes what is on the form and stores nothing. Of a text that does not
    say its encoding that is asked first.
    """
    project = request.access.project
    stored = get_object_or_404(StoredFile.objects.select_related("project"), project=project, pk=file_id)
    wanted = (request.POST or request.GET).get("encoding", "")
    try:
        if wanted == ASK:
            same = _("All of this file reads the same in every encoding that is known here.")
            return _encoding_page(request, stored, offers_for(stored), same)
        encoding = encoding_of(stored, wanted)
        guess = detect(stored, IMPORTERS.values(), encoding)
        look, trouble = _look(stored, guess, request.POST.get("format", ""), encoding)
    except EncodingNeededError as error:
        return _encoding_page(request, stored, error.offers, error.message)
    except HypacError as error:
        messages.error(request, str(error))
        return redirect("import_upload", project.slug)
    form = MappingForm(
        request.POST or None, look=look, guess=guess, text_format_is_open=may_change_text_format(project)
    )
    only_look = request.method != "POST" or bool(request.htmx or "do" in request.POST)
    if not only_look and not trouble and form.is_valid():
        try:
            job = start_import(
                project=project,
                user=request.user,
                stored_file=stored,
                mapping=form.mapping(),
                format_name=look.format,
                text_format=form.cleaned_data.get("text_format") or "",
                keep_labels=form.cleaned_data.get("keep_labels", False),
                add_duplicates=form.cleaned_data["add_duplicates"],
                encoding=look.encoding,
            )
        except HypacError as error:
            add_error(form, error)
        else:
            return redirect("job", project.slug, job.pk)
    return render(
        request,
        "annotation/imports/import_mapping.html",
        _mapping_page(request, stored, look)
        | {"form": form, "guess": guess, "step": "import", "trouble": trouble, "only_look": only_look},
    )


@needs("items.import", "POST")
def import_undo(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    shown = found = get_object_or_404(Job, project=request.access.project, pk=job_id)
    with refusals_as_messages(request):
        shown = start_undo(job=found, user=request.user)
    return redirect("job", request.access.project.slug, shown.pk)


@dataclass(frozen=True)
class Chosen:
    """What is on the form now, whatever of it can be used: `shown` has "" for a place that is still free."""

    shown: list[str]
    id_column: str
    text_format: str

    @property
    def mapping(self) -> ColumnMapping:
        return ColumnMapping.showing([name for name in self.shown if name], id_column=self.id_column)


def _encoding_page(
    request: ProjectRequest, stored: StoredFile, offers: list[Offer], otherwise: str
) -> HttpResponseBase:
    if not offers:
        messages.error(request, otherwise)
        return redirect("import_upload", request.access.project.slug)
    context = {"file": stored, "offers": offers, "step": "import", "is_utf8": offers[0].name == UTF8}
    return render(request, "annotation/imports/import_encoding.html", context)


def _look(stored: StoredFile, guess: str, wanted: str, encoding: str) -> tuple[Preview, str]:
    """The file as it is wanted to be read; as it seems to be, and why not otherwise, where it cannot."""
    texts = {wanted, guess} <= {*text_formats()}
    if not texts and not (guess == EXCEL and wanted.startswith(f"{EXCEL}:")):
        return preview(stored_file=stored, encoding=encoding), ""
    try:
        look = preview(stored_file=stored, format_name=wanted, encoding=encoding)
        if not look.columns:
            raise InputError(_no_row(look))
        return look, ""
    except InputError as error:
        as_it_seems = preview(stored_file=stored, encoding=encoding)
        return as_it_seems, _("It cannot be read like that. %(error)s") % {"error": error}


def _no_row(look: Preview) -> str:
    """That no row of the beginning is of this format, and why the first one is not."""
    words = _("None of the first rows is of the format “%(format)s”. %(where)s: %(problem)s")
    where, problem = look.problems[0]
    return words % {"format": gettext(look.format_title), "where": where, "problem": problem}


def _mapping_page(request: ProjectRequest, stored: StoredFile, look: Preview) -> dict[str, Any]:
    project = request.access.project
    chosen = _chosen(request, project, look)
    # A file that was imported can be looked at again, with the answers of models in it.
    hidden = routing_port().hidden_columns(project=project) | look.reserved
    rows = [
        [
            _("(not shown now)") if name in hidden else row.get(name, "")[: limits.CELL]
            for name in look.columns
        ]
        for row in look.rows
    ]
    check, refusal = _check(stored, look, chosen.mapping)
    again = check and duplication_warning(
        stored_file=stored, mapping=chosen.mapping, format_name=look.format, check=check
    )
    answers = [column for column in look.details if column.suspicious]
    only_answers = bool(answers) and not look.suggestion.shown and not chosen.mapping.shown
    shown_answers = [column.name for column in answers if column.name in chosen.shown]
    nothing_new = check is not None and bool(check.already_there) and not check.new
    return {
        "nothing_new": bool(answers) and nothing_new,
        "other_kind": _other_kind(project, look),
        "names_items": _names_items(project, look) if answers and not only_answers else "",
        "only_answers": only_answers,
        "look": look,
        "encoding": ENCODINGS[look.encoding or UTF8].title,
        "rows": list(zip_longest(look.thumbnails, rows)) if look.thumbnails else [("", row) for row in rows],
        "file": stored,
        "chosen": chosen,
        "check": check,
        "refusal": refusal,
        "doubling": again,
        "text_format": chosen.text_format,
        "answers": answers,
        "shown_answers": shown_answers,
        "with_labels": formats_with_labels(),
        "shown_names": ", ".join(f"“{name}”" for name in shown_answers),
        "may_add": len(chosen.shown) < min(limits.ITEM_FIELDS, len(look.columns)),
    }


def _other_kind(project: Project, look: Preview) -> str:
    """What to do where the file holds images, and the project texts alone, or the other way round."""
    if not is_other_kind(project, images=look.holds_images):
        return ""
    if look.holds_images:
        return _(
            "This is a text project: all its items are texts, and this file holds images. Guidelines and "
            "models that are about texts are of no use for them. Import the images into a project of their "
            "own; or go on, if both are to be labelled here."
        )
    return _(
        "This is an image project: its items are images, and this file holds texts. Import the texts "
        "into a project of their own, or images in a zip archive here; or go on, if both are to be "
        "labelled here."
    )


def _names_items(project: Project, look: Preview) -> str:
    """The column with ids of the project's items, where the file holds answers and nothing else beside it: it
    is what a model answered about them, as it seems, and no data. "" otherwise.
    """
    others = [column.name for column in look.details if not column.suspicious]
    ids = {row.get(others[0], "").strip() for row in look.rows} if len(others) == 1 else set()
    found = project.items.filter(external_id__in=ids).count() if ids and "" not in ids else 0
    return others[0] if ids and found == len(ids) else ""


def _chosen(request: ProjectRequest, project: Project, look: Preview) -> Chosen:
    """What was chosen, with the button that was pressed (`do`) taken into account."""
    if request.method != "POST":
        shown = list(look.suggestion.shown) or [""]
        return Chosen(shown, look.suggestion.id_column, project.text_format)
    data = request.POST
    # Read in another way, the file may have other columns.
    shown = [name for name in data.getlist("text_column") if not name or name in look.columns]
    what, _colon, place = data.get("do", "").partition(":")
    index = int(place) if place.isdecimal() and len(place) < 5 else -1
    if what == "add" and len(shown) < limits.ITEM_FIELDS:
        shown.append("")
    if what == "remove" and 0 <= index < len(shown):
        del shown[index]
    if what == "up" and 0 < index < len(shown):
        shown[index - 1 : index + 1] = reversed(shown[index - 1 : index + 1])
    if what == "down" and 0 <= index < len(shown) - 1:
        shown[index : index + 2] = reversed(shown[index : index + 2])
    text_format = data.get("text_format", "")
    if text_format not in Project.TextFormat.values or not may_change_text_format(project):
        text_format = project.text_format
    id_column = data.get("id_column", "")
    return Chosen(
        shown or list(look.suggestion.shown) or [""],
        id_column if id_column in look.columns else "",
        text_format,
    )


def _check(stored: StoredFile, look: Preview, mapping: ColumnMapping) -> tuple[Check | None, str]:
    """What an import would do, and why there would be none."""
    if look.problems and not look.columns and not look.holds_images:
        return None, _no_row(look)
    try:
        check_mapping(project=stored.project, seen=look, mapping=mapping)
        return check_import(
            stored_file=stored, mapping=mapping, format_name=look.format, encoding=look.encoding
        ), ""
    except HypacError as error:
        return None, error.message if error.where in ("text_column", "id_column") else _with_place(error)


def _add_file_error(form: UploadForm, error: HypacError, name: str) -> None:
    """Above the form, with the line or the part of the file; its name alone would say nothing new."""
    form.add_error(None, error.message if error.where in ("file", name) else _with_place(error))


def _with_place(error: HypacError) -> str:
    return f"{for_reader(error.where)}: {error.message}" if error.where else error.message


def _pasted(project: Project, pasted: str) -> StoredFile:
    text = pasted.strip("\r\n").replace("\r\n", "\n") + "\n"
    content = text.encode()
    # Items without an id are named by the file and the line: two texts must not have one name.
    name = f"pasted-{hashlib.sha256(content).hexdigest()[:8]}.txt"
    return store_file(
        project=project, content=File(io.BytesIO(content)), original_name=name, media_type="text/plain"
    )


def _sent(request: ProjectRequest) -> StoredFile | None:
    """The file that this person sent last, if nothing was imported of it: it need not be chosen again."""
    project = request.access.project
    stored = project.files.filter(pk=request.session.get(SENT, 0)).first()
    if stored is None or project.jobs.filter(kind="import", params__file=stored.pk).exists():
        return None
    return stored
