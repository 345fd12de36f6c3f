"""Addresses that are told what happens in a project: making them, looking after them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.events import EVENTS
from annotation.common.forms import add_error
from annotation.common.shapes import SHAPES, STANDARD
from annotation.errors import HypacError, InputError
from annotation.models import Webhook, WebhookDelivery
from annotation.outside.net import check_url
from annotation.outside.webhooks import manage

VIEW, EDIT = "webhooks.view", "webhooks.edit"
PAGE = 30


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=2000,
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Messages are sent there by POST. It starts with https://, or with http:// where the server "
            "allows that host."
        ),
    )
    description = forms.CharField(label=gettext_lazy("What it is for"), required=False, max_length=200)
    shape = forms.ChoiceField(
        label=gettext_lazy("For whom"),
        choices=lambda: [(name, shape.title) for name, shape in SHAPES.items()],
        required=False,
        help_text=gettext_lazy("A chat is told one sentence, with a link to the page."),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("What it is told"),
        choices=EVENTS.items,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one event.")},
    )

    def clean_shape(self) -> str:
        return self.cleaned_data["shape"] or STANDARD

    def clean_url(self) -> str:
        """Here as in the service, so that what else is wrong is told at the same time."""
        try:
            return check_url(self.cleaned_data["url"])
        except InputError as error:
            raise forms.ValidationError(error.message) from None


@needs(VIEW, "GET")
def webhooks(request: ProjectRequest) -> HttpResponseBase:
    return _list(request)


@needs(EDIT, "POST")
def webhook_new(request: ProjectRequest) -> HttpResponseBase:
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            webhook, secret = manage.create_webhook(
                project=request.access.project, actor=request.user, **form.cleaned_data
            )
        except HypacError as error:
            add_error(form, error)
        else:
            return _secret(request, webhook, secret)
    return _list(request, form)


@needs(VIEW, "GET")
def webhook(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    return _page(request, _find(request, webhook_id))


@needs(EDIT, "POST")
def webhook_save(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    found, form = _find(request, webhook_id), WebhookForm(request.POST)
    if form.is_valid():
        try:
            manage.update_webhook(webhook=found, actor=request.user, **form.cleaned_data)
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The webhook is saved."))
            return _back(found)
    return _page(request, found, form)


@needs(EDIT, "POST")
def webhook_active(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    found, active = _find(request, webhook_id), request.POST.get("active") == "1"
    manage.update_webhook(webhook=found, actor=request.user, is_active=active)
    messages.success(request, _("The webhook is on.") if active else _("The webhook is off."))
    return _back(found)


@needs(EDIT, "POST")
def webhook_delete(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    manage.delete_webhook(webhook=_find(request, webhook_id), actor=request.user)
    messages.success(request, _("The webhook is deleted."))
    return redirect("webhooks", request.access.project.slug)


@needs(EDIT, "POST")
def webhook_rotate(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    found = _find(request, webhook_id)
    return _secret(request, found, manage.rotate_secret(webhook=found, actor=request.user))


@needs(EDIT, "POST")
def webhook_test(request: ProjectRequest, webhook_id: int) -> HttpResponseBase:
    found = _find(request, webhook_id)
    manage.send_test(webhook=found, actor=request.user)
    messages.success(request, _("A test is on its way; load this page again to see what became of it."))
    return _back(found)


@needs(EDIT, "POST")
def webhook_redeliver(request: ProjectRequest, webhook_id: int, sent_id: int) -> HttpResponseBase:
    found = _find(request, webhook_id)
    delivery = WebhookDelivery.objects.select_related("webhook__project").filter(webhook=found, pk=sent_id)
    if not delivery:
        raise Http404("no such message")
    with refusals_as_messages(request):
        manage.redeliver(delivery=delivery[0], actor=request.user)
        messages.success(request, _("The message is sent again."))
    return _back(found)


def _find(request: ProjectRequest, webhook_id: int) -> Webhook:
    webhooks = request.access.project.webhooks.select_related("project", "created_by")
    found = webhooks.filter(pk=webhook_id).first()
    if found is None:
        raise Http404("no such webhook")
    return found


def _back(webhook: Webhook) -> HttpResponseBase:
    return redirect("webhook", webhook.project.slug, webhook.pk)


def _list(request: ProjectRequest, form: WebhookForm | None = None) -> HttpResponseBase:
    context = {"webhooks": request.access.project.webhooks.order_by("pk"), "form": form or WebhookForm()}
    return render(request, "annotation/outside/webhooks.html", context)


def _page(request: ProjectRequest, webhook: Webhook, form: WebhookForm | None = None) -> HttpResponseBase:
    shown = ("url", "description", "shape", "events")
    given = {name: getattr(webhook, name) for name in shown}
    deliveries = Paginator(webhook.deliveries.order_by("-pk"), PAGE)
    context: dict[str, Any] = {
        "webhook": webhook,
        "form": form or WebhookForm(initial=given),
        "page": deliveries.get_page(request.GET.get("page")),
    }
    return render(request, "annotation/outside/webhook.html", context)


def _secret(request: ProjectRequest, webhook: Webhook, secret: str) -> HttpResponseBase:
    """The secret is in this answer and nowhere else: no redirect, no message that is stored."""
    response = render(
        request, "annotation/outside/webhook_secret.html", {"webhook": webhook, "secret": secret}
    )
    response.headers["Cache-Control"] = "no-store, private"
    return response


_HOOK = "projects/<slug:slug>/webhooks/<row:webhook_id>/"
urlpatterns = [
    path("projects/<slug:slug>/webhooks/", webhooks, name="webhooks"),
    path("projects/<slug:slug>/webhooks/new/", webhook_new, name="webhook_new"),
    path(_HOOK, webhook, name="webhook"),
    path(f"{_HOOK}save/", webhook_save, name="webhook_save"),
    path(f"{_HOOK}active/", webhook_active, name="webhook_active"),
    path(f"{_HOOK}delete/", webhook_delete, name="webhook_delete"),
    path(f"{_HOOK}rotate/", webhook_rotate, name="webhook_rotate"),
    path(f"{_HOOK}test/", webhook_test, name="webhook_test"),
    path(f"{_HOOK}deliveries/<row:sent_id>/redeliver/", webhook_redeliver, name="webhook_redeliver"),
]
