"""Buckets, and data sets of the Hugging Face Hub, that a project takes files from and delivers to: making,
changing, trying and deleting them, and importing from one.
"""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError
from annotation.imports.fetching import KIND, fetch
from annotation.models import Connection, Job
from annotation.outside.connections import (
    create_connection,
    delete_connection,
    list_folder,
    try_connection,
    update_connection,
)
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


class HubForm(ConnectionForm):
    """The same of a data set."""

    endpoint = access_key = path_style = None  # type: ignore[assignment]
    bucket = _text(
        label=gettext_lazy("Data set"),
        max_length=200,
        help_text=gettext_lazy("Its owner and its own name, like organisation/reviews."),
    )
    region = _text(label=gettext_lazy("Branch"), max_length=60, initial="main")
    folder = _text(label=gettext_lazy("Folder in the data set"), max_length=490, required=False)
    secret = forms.CharField(
        label=gettext_lazy("Token"),
        max_length=200,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy(
            "Needed for what only some may read, and to deliver. It is stored encrypted, and no page shows "
            "it again."
        ),
    )
    field_order = ("name", "bucket", "region", "folder", "secret")


class _Changing:
    """What is stored is in the form, apart from the secret."""

    base_fields: dict[str, forms.Field]
    fields: dict[str, forms.Field]
    errors: Any
    data: Any
    add_error: Any

    def __init__(self, data: Any = None, *, connection: Connection) -> None:
        names = set(self.base_fields) - {"folder", "secret"}
        initial = {name: getattr(connection, name) for name in names}
        super().__init__(data, initial={**initial, "folder": connection.prefix})  # type: ignore[call-arg]
        secret = self.fields["secret"]
        secret.required = False
        secret.help_text = _("Empty: the stored one stays. Another address of the store needs it again.")
        if connection.is_hub:
            secret.help_text = _("Empty: the stored one stays. Another data set needs it again.")

    def ask_again(self) -> None:
        """No page shows a secret, also not the one just entered: the old one would stay without a word."""
        if self.errors and self.data.get("secret") and "secret" not in self.errors:
            self.add_error("secret", _("Enter the secret key again: nothing has been saved yet."))


class ConnectionChangeForm(_Changing, ConnectionForm):
    """Of a bucket."""


class HubChangeForm(_Changing, HubForm):
    """Of a data set."""


@needs("connections.view", "GET")
def connections(request: ProjectRequest) -> HttpResponseBase:
    return _list(request)


@needs("connections.edit", "GET", "POST")
def connection_new(request: ProjectRequest) -> HttpResponseBase:
    if request.method != "POST":  # a refused form, loaded again
        return redirect("connections", request.access.project.slug)
    kind = Connection.Kind.HUB if request.POST.get("kind") == Connection.Kind.HUB else Connection.Kind.S3
    form = (HubForm if kind == Connection.Kind.HUB else ConnectionForm)(request.POST)
    if form.is_valid():
        values = form.values() | {"kind": kind}
        try:
            create_connection(project=request.access.project, actor=request.user, **values)
        except HypacError as error:
            form.add_refusal(error)
        else:
            messages.success(request, _("The connection is made. Try it, to see whether the keys fit."))
            return redirect("connections", request.access.project.slug)
    return _list(request, form)


@needs("connections.edit", "GET", "POST")
def connection_edit(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    found = get_object_or_404(request.access.project.connections, pk=connection_id)
    kind = HubChangeForm if found.is_hub else ConnectionChangeForm
    form: ConnectionChangeForm | HubChangeForm = kind(request.POST or None, connection=found)
    if request.method == "POST" and form.is_valid():
        try:
            update_connection(connection=found, actor=request.user, **form.values())
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
        some = try_connection(connection=found)
        words = (
            _("It works; there are objects in it.") if some else _("It works; there is nothing in it yet.")
        )
        messages.success(request, words)
    return redirect("connections", request.access.project.slug)


@needs("connections.edit", "POST")
def connection_delete(request: ProjectRequest, connection_id: int) -> HttpResponseBase:
    found = get_object_or_404(request.access.project.connections, pk=connection_id)
    delete_connection(connection=found, actor=request.user)
    messages.success(request, _("The connection is deleted. What was read from it stays."))
    return redirect("connections", request.access.project.slug)


@needs("items.import", "POST")
def import_fetch(request: ProjectRequest) -> HttpResponseBase:
    """Have an object brought here; its columns are chosen once it has arrived."""
    found = _chosen(request, request.POST.get("connection", ""))
    slug = request.access.project.slug
    job = None
    with refusals_as_messages(request):
        job = fetch(connection=found, user=request.user, key=request.POST.get("key", ""))
    return redirect("job", slug, job.pk) if job else redirect("import_upload", slug)


@needs("items.import", "POST")
def import_browse(request: ProjectRequest) -> HttpResponseBase:
    """Which objects there are to be brought here, below the folder that was named."""
    number, below = request.POST.get("connection", ""), request.POST.get("key", "")
    connection = _chosen(request, number)
    context: dict[str, Any] = {}
    with refusals_as_messages(request):
        found, more = list_folder(connection=connection, below=below)
        keys = [(entry.key.removeprefix(connection.prefix), entry.size) for entry in found]
        context = {"connection": connection, "folder": below, "keys": keys, "more": more, "step": "import"}
    if not context:
        return redirect("import_upload", request.access.project.slug)
    return render(request, "annotation/imports/import_browse.html", context)


def _chosen(request: ProjectRequest, number: str) -> Connection:
    known = request.access.project.connections.select_related("project")
    return get_object_or_404(known, pk=int(number) if number.isdecimal() and len(number) < 19 else 0)


def fetched_page(job: Job, access: Access) -> tuple[str, str] | None:
    """Where it goes on with a file that has arrived."""
    if job.kind != KIND or "file" not in job.result or not access.allows("items.import"):
        return None
    if "import" in job.result:
        return _("The import"), reverse("job", args=[access.project.slug, job.result["import"]])
    return _("Choose its columns"), reverse("import_mapping", args=[access.project.slug, job.result["file"]])


def _list(request: ProjectRequest, form: ConnectionForm | None = None) -> HttpResponseBase:
    """`form` is what somebody sent, and could not be used."""
    of_hub = form if isinstance(form, HubForm) else HubForm(auto_id="hub_%s")
    of_bucket = form if form is not None and form is not of_hub else ConnectionForm()
    found = request.access.project.connections.select_related("sync").order_by("name")
    context = {
        "connections": found,
        "form": of_bucket,
        "hub_form": of_hub,
        "hub": settings.HYPAC_HUB_ENDPOINT,
    }
    return render(request, "annotation/projects/connections.html", context)


_ALL = "projects/<slug:slug>/connections/"
urlpatterns = [
    path(_ALL, connections, name="connections"),
    path(f"{_ALL}new/", connection_new, name="connection_new"),
    path(f"{_ALL}<row:connection_id>/", connection_edit, name="connection_edit"),
    path(f"{_ALL}<row:connection_id>/test/", connection_test, name="connection_test"),
    path(f"{_ALL}<row:connection_id>/delete/", connection_delete, name="connection_delete"),
    path("projects/<slug:slug>/import/fetch/", import_fetch, name="import_fetch"),
    path("projects/<slug:slug>/import/browse/", import_browse, name="import_browse"),
]
