"""The page on which a bucket is synchronised: new files from one folder, deliveries into another."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError
from annotation.imports.bucket_sync import (
    HowToImport,
    counts_of,
    end_sync,
    look_now,
    looks_of,
    save_sync,
    writings_of,
)
from annotation.imports.columns import IMPORT
from annotation.jobs.progress import job_progress
from annotation.models import BucketSync, Connection, Job, StoredFile
from annotation.ports import routing_port
from annotation.projects.connections_views import PLAIN

OFFERED = 20
"""Imports whose columns can be chosen: the newest."""
AS_IT_IS = "as-it-is"


def _folder(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=490,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=help_text,
    )


class SyncForm(forms.Form):
    takes = forms.BooleanField(
        label=gettext_lazy("Import new files"),
        required=False,
        help_text=gettext_lazy(
            "Each file of the folder becomes items once, and once more when its content changes; items that "
            "are there already are not added again."
        ),
    )
    take_from = _folder(
        gettext_lazy("Folder of new files"), gettext_lazy("Below that of the connection; empty: all of it.")
    )
    every_minutes = forms.TypedChoiceField(
        label=gettext_lazy("Look every"),
        coerce=int,
        choices=BucketSync.Every.choices,
        initial=BucketSync.Every.HOUR,
    )
    like = forms.ChoiceField(
        label=gettext_lazy("Columns as in"),
        required=False,
        help_text=gettext_lazy(
            "An import of one such file, in which you chose its columns: all others are read in the same way."
        ),
    )
    add_duplicates = forms.BooleanField(
        label=gettext_lazy("Add rows whose content is in the project under another name"), required=False
    )
    writes = forms.BooleanField(
        label=gettext_lazy("Write each new delivery back"),
        required=False,
        help_text=gettext_lazy("All its files, the sums last: where SHA256SUMS is, everything is."),
    )
    write_to = _folder(
        gettext_lazy("Folder of deliveries"),
        gettext_lazy("Below that of the connection. Each delivery gets a folder of its own in it."),
    )

    def __init__(self, data: Any = None, *, connection: Connection, sync: BucketSync | None) -> None:
        self.known = HowToImport.of(sync.columns) if sync and sync.columns else None
        initial: dict[str, Any] = {}
        if sync is not None:
            names = ("takes", "take_from", "every_minutes", "write_to")
            initial = {name: getattr(sync, name) for name in names}
            initial["writes"] = sync.writes_since is not None
            initial["add_duplicates"] = bool(self.known and self.known.add_duplicates)
        super().__init__(data, initial=initial)
        if connection.is_hub:
            self.fields["writes"].help_text = _("As one commit, with a data card.")
            self.fields["write_to"].help_text = _(
                "Below that of the connection. Each delivery takes the place of the one before."
            )
        self.imports = {
            str(job.pk): job
            for job in connection.project.jobs.filter(kind=IMPORT, state=Job.State.DONE).order_by("-id")[
                :OFFERED
            ]
        }
        files = StoredFile.objects.in_bulk([job.params["file"] for job in self.imports.values()])
        choices = [(AS_IT_IS, _("so far: %(columns)s") % {"columns": _in_words(self.known)})] * bool(
            self.known
        )
        for pk, job in self.imports.items():
            file = files.get(job.params["file"])
            columns = _in_words(HowToImport.of(job.params))
            choices.append((pk, f"{file.original_name if file else pk} ({columns})"))
        self.fields["like"].choices = choices  # type: ignore[attr-defined]

    def values(self) -> dict[str, Any]:
        """What the service takes. Raises nothing: without an import to follow the form is not valid."""
        data = self.cleaned_data
        how = None
        if data["takes"]:
            chosen = self.imports.get(data["like"])
            how = HowToImport.of(chosen.params) if chosen else self.known
            assert how is not None  # noqa: S101 - `clean` has seen to it
            how = how.with_duplicates(data["add_duplicates"])
        return {
            "how": how,
            "take_from": data["take_from"],
            "every_minutes": data["every_minutes"],
            "write_to": data["write_to"] if data["writes"] else None,
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("takes") and not data.get("like") and "like" not in self.errors:
            words = _("Import one file of the folder first, and choose its columns there.")
            self.add_error("like", words)
        return data


def _in_words(how: HowToImport | None) -> str:
    """Columns of an import: what names the items, then what people read."""
    if how is None:
        return ""
    shown = ", ".join(how.mapping.shown) or _("images")
    return f"{how.mapping.id_column} → {shown}" if how.mapping.id_column else shown


@needs("connections.edit", "GET", "POST")
def bucket_sync(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    project = request.access.project
    connection = _connection(request, connection_id)
    sync = _sync(connection)
    form = SyncForm(request.POST or None, connection=connection, sync=sync)
    if request.method == "POST" and form.is_valid():
        try:
            save_sync(connection=connection, actor=request.user, **form.values())
        except HypacError as error:
            form.add_error(error.where if error.where in form.fields else None, error.message)
        else:
            messages.success(request, _("Saved. What is new in the bucket is imported shortly."))
            return redirect("bucket_sync", project.slug, connection.pk)
    context: dict[str, Any] = {"connection": connection, "sync": sync, "form": form}
    if sync is not None:
        last = looks_of(sync).first()
        unwritten, what_to_do = routing_port().unwritten_deliveries(sync=sync)
        context |= {
            "counts": counts_of(sync),
            "files": sync.files.select_related("job")[: limits.LISTED],
            "most": limits.LISTED,
            "last": last and job_progress(last),
            "unwritten": unwritten,
            "what_to_do": what_to_do,
            "written": writings_of(sync)[: limits.RUNS_LISTED],
        }
    return render(request, "annotation/projects/bucket_sync.html", context)


@needs("connections.edit", "POST")
def bucket_sync_now(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    sync = get_object_or_404(BucketSync, connection=_connection(request, connection_id))
    job = None
    with refusals_as_messages(request):
        job = look_now(sync=sync, user=request.user)
    slug = request.access.project.slug
    return redirect("job", slug, job.pk) if job else redirect("bucket_sync", slug, connection_id)


@needs("connections.edit", "POST")
def bucket_sync_end(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    sync = get_object_or_404(BucketSync, connection=_connection(request, connection_id))
    end_sync(sync=sync, actor=request.user)
    messages.success(request, _("The bucket is not synchronised any more. What was imported stays."))
    return redirect("connections", request.access.project.slug)


def _connection(request: ProjectRequest, connection_id: int) -> Connection:
    known = request.access.project.connections.select_related("project")
    return get_object_or_404(known, pk=connection_id)


def _sync(connection: Connection) -> BucketSync | None:
    return BucketSync.objects.select_related("connection__project").filter(connection=connection).first()


_ONE = "projects/<slug:slug>/connections/<row:connection_id>/sync/"
urlpatterns = [
    path(_ONE, bucket_sync, name="bucket_sync"),
    path(f"{_ONE}now/", bucket_sync_now, name="bucket_sync_now"),
    path(f"{_ONE}end/", bucket_sync_end, name="bucket_sync_end"),
]
