"""Logging in and out, one's own account and password, and the page that says the server is alive."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse_lazy
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotation.models import User
from annotation.services import audit
from annotation.services.members import name_of
from annotation.services.password_links import tokens
from annotation.views.access import PageRequest, public, signed_in
from annotation.views.people_forms import AccountDetailsForm
from annotation.views.throttle import throttled


class _LoginView(auth_views.LoginView):
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # A part of a page asked for something after its session had ended: the whole page has to log in.
        if cast(PageRequest, request).htmx and not request.user.is_authenticated:
            return HttpResponseClientRedirect(request.get_full_path())
        return super().dispatch(request, *args, **kwargs)

    def get_redirect_url(self, *args: Any, **kwargs: Any) -> str:
        """Where the person wanted to go, unless that was sending a form: then nothing is there to look at."""
        wanted = super().get_redirect_url(*args, **kwargs)
        try:
            view = resolve(wanted.partition("?")[0]).func
        except Resolver404:
            return wanted if wanted == "" else ""
        return wanted if "GET" in getattr(view, "methods", ("GET",)) else ""


@public("GET", "POST")
def login(request: HttpRequest) -> HttpResponseBase:
    return _LoginView.as_view()(request)


@signed_in("POST")
def logout(request: HttpRequest) -> HttpResponseBase:
    return auth_views.LogoutView.as_view()(request)


class _PasswordView(auth_views.PasswordChangeView):
    template_name = "registration/password.html"
    success_url = reverse_lazy("project_list")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your password is changed. Other devices have to log in again."))
        return super().form_valid(form)


@signed_in("GET", "POST")
def password(request: HttpRequest) -> HttpResponseBase:
    """Choose a new password; whoever got a first one from an owner should."""
    return _PasswordView.as_view()(request)


@signed_in("GET", "POST")
def account(request: HttpRequest) -> HttpResponseBase:
    """What one says about oneself, and how pages look to oneself."""
    user = cast(User, request.user)
    # Of a copy: the header shows the name that is stored, also above a form with a mistake.
    form = AccountDetailsForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved."))
        return redirect("account")
    memberships = user.memberships.filter(is_active=True, project__archived_at__isnull=True)
    return render(
        request,
        "registration/account.html",
        {"form": form, "memberships": memberships.select_related("project").order_by("project__name")},
    )


class _ResetView(auth_views.PasswordResetConfirmView):
    """Django's: it keeps the token in the session and goes on without it in the address."""

    template_name = "registration/reset.html"
    success_url = reverse_lazy("login")
    token_generator = tokens

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            user = cast(User, self.user)
            audit.record(project=None, actor=user, action="account.password_reset", target=name_of(user))
        messages.success(self.request, _("Your password is set. Log in with it."))
        return response


@public("GET", "POST")
@throttled
def reset(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Where the link leads that an owner made for somebody who lost their password."""
    response = _ResetView.as_view()(request, uidb64=uidb64, token=token)
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


@public("GET")
def health(request: HttpRequest) -> HttpResponse:
    """200 while this process can answer and reach its database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok\n", content_type="text/plain")
