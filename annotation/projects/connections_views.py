"""Buckets that a project takes files from and delivers to: making, changing, trying and deleting them, and
importing from one.
"""

from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError
from annotation.imports.fetching import KIND, fetch
from annotation.models import Connection, Job
from annotation.outside import connections as service
from annotation.permissions import Access

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


def _text(**options: object) -> forms.CharField:
    return forms.CharField(widget=forms.TextInput(attrs=PLAIN), **options)  # type: ignore[arg-type]


class ConnectionForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    endpoint = _text(
        label=gettext_lazy("Address of the store"),
        max_length=500,
        help_text=gettext_lazy("Without the bucket, like https://s3.eu-west-1.amazonaws.com."),
    )
    bucket = _text(label=gettext_lazy("Bucket"), max_length=63)
    # Not "prefix": a form has an attribute of that name.
    folder = _text(label=gettext_lazy("Folder in the bucket"), max_length=490, required=False)
    region = _text(label=gettext_lazy("Region"), max_length=60, initial="us-east-1")
    access_key = _text(label=gettext_lazy("Access key"), max_length=200)
    secret = forms.CharField(
        label=gettext_lazy("Secret key"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("It is stored encrypted, and no page shows it again."),
    )
    path_style = forms.BooleanField(
        label=gettext_lazy("The bucket comes after the host in an address"),
        required=False,
        initial=True,
        help_text=gettext_lazy(
            "As in https://store.example.org/bucket, which nearly every store understands. Without it: "
            "https://bucket.store.example.org."
        ),
    )

    def values(self) -> dict[str, Any]:
        """What the services take. Without a secret the stored one stays."""
        values = dict(self.cleaned_data)
        values["prefix"] = values.pop("folder")
        return values if values["secret"] else {name: values[name] for name in values if name != "secret"}

    def add_refusal(self, error: HypacError) -> None:
        """Beside its field: that of the prefix has another name here."""
        where = "folder" if error.where == "prefix" else error.where
        self.add_error(where if where in self.fields else None, error.message)


class ConnectionChangeForm(ConnectionForm):
    """What is stored is in it, apart from the secret."""

    def __init__(self, data: Any = None, *, connection: Connection) -> None:
        names = set(self.base_fields) - {"folder", "secret"}
        initial = {name: getattr(connection, name) for name in names}
        super().__init__(data, initial={**initial, "folder": connection.prefix})
        secret = self.fields["secret"]
        secret.required = False
        secret.help_text = _("Empty: the stored one stays. Another address of the store needs it again.")

    def ask_again(self) -> None:
        """No page shows a secret, also not the one just entered: the old one would stay without a word."""
        if self.errors and self.data.get("secret") and "secret" not in self.errors:
            self.add_error("secret", _("Enter the secret key again: nothing has been saved yet."))


@needs("connections.view", "GET")
def connections(request: ProjectRequest) -> HttpResponseBase:
    return _list(request, ConnectionForm())


@needs("connections.edit", "POST")
def connection_new(request: ProjectRequest) -> HttpResponseBase:
    form = ConnectionForm(request.POST)
    if form.is_valid():
        try:
            service.create_connection(project=request.access.project, actor=request.user, **form.values())
        except HypacError as error:
            form.add_refusal(error)
        else:
            messages.success(request, _("The connection is made. Try it, to see whether the keys fit."))
            return redirect("connections", request.access.project.slug)
    return _list(request, form)


@needs("connections.edit", "GET", "POST")
def connection_edit(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    found = get_object_or_404(request.access.project.connections, pk=connection_id)
    form = ConnectionChangeForm(request.POST or None, connection=found)
    if request.method == "POST" and form.is_valid():
        try:
            service.update_connection(connection=found, actor=request.user, **form.values())
        except HypacError as error:
            form.add_refusal(error)
        else:
            messages.success(request, _("The connection is saved. Try it, to see whether the keys fit."))
            return redirect("connections", request.access.project.slug)
    form.ask_again()
    return render(request, "annotation/projects/connection_form.html", {"connection": found, "form": form})


@needs("connections.edit", "POST")
def connection_test(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    found = get_object_or_404(request.access.project.connections, pk=connection_id)
    with refusals_as_messages(request):
        some = service.try_connection(connection=found)
        words = (
            _("It works; there are objects in it.") if some else _("It works; there is nothing in it yet.")
        )
        messages.success(request, words)
    return redirect("connections", request.access.project.slug)


@needs("connections.edit", "POST")
def connection_delete(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    found = get_object_or_404(request.access.project.connections, pk=connection_id)
    service.delete_connection(connection=found, actor=request.user)
    messages.success(request, _("The connection is deleted. What was read from it stays."))
    return redirect("connections", request.access.project.slug)


@needs("items.import", "POST")
def import_fetch(request: ProjectRequest) -> HttpResponseBase:
    """Have an object brought here; its columns are chosen once it has arrived."""
    number = request.POST.get("connection", "")
    known = request.access.project.connections.select_related("project")
    found = get_object_or_404(known, pk=int(number) if number.isdecimal() and len(number) < 19 else 0)
    slug = request.access.project.slug
    job = None
    with refusals_as_messages(request):
        job = fetch(connection=found, user=request.user, key=request.POST.get("key", ""))
    return redirect("job", slug, job.pk) if job else redirect("import_upload", slug)


def fetched_page(job: Job, access: Access) -> tuple[str, str] | None:
    """Where it goes on with a file that has arrived."""
    if job.kind != KIND or "file" not in job.result or not access.allows("items.import"):
        return None
    if "import" in job.result:
        return _("The import"), reverse("job", args=[access.project.slug, job.result["import"]])
    return _("Choose its columns"), reverse("import_mapping", args=[access.project.slug, job.result["file"]])


def _list(request: ProjectRequest, form: ConnectionForm) -> HttpResponseBase:
    found = request.access.project.connections.select_related("sync").order_by("name")
    return render(request, "annotation/projects/connections.html", {"connections": found, "form": form})


_ALL = "projects/<slug:slug>/connections/"
urlpatterns = [
    path(_ALL, connections, name="connections"),
    path(f"{_ALL}new/", connection_new, name="connection_new"),
    path(f"{_ALL}<row:connection_id>/", connection_edit, name="connection_edit"),
    path(f"{_ALL}<row:connection_id>/test/", connection_test, name="connection_test"),
    path(f"{_ALL}<row:connection_id>/delete/", connection_delete, name="connection_delete"),
    path("projects/<slug:slug>/import/fetch/", import_fetch, name="import_fetch"),
]
