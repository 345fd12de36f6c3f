"""Logging in and out, one's own account and password, and the page that says the server is alive."""

from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse, reverse_lazy
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotation.common import audit, limits
from annotation.common.access import PageRequest, public, signed_in
from annotation.common.mail import ask_to_confirm, is_on
from annotation.models import User
from annotation.models.projects import LONG_COLUMNS
from annotation.people import attempt_limits as attempts, own_data
from annotation.people.attempt_limits import throttled
from annotation.people.forms import AccountDetailsForm, ChangePasswordForm, ResetPasswordForm
from annotation.people.invitations_views import IN_SESSION, invitations_shown
from annotation.people.log_in import has_sign_on, may_use_password
from annotation.people.members import name_of
from annotation.people.password_links import tokens
from annotation.people.sign_on import log_out_address
from annotation.people.sign_on_views import ID_TOKEN, address_here

LOG_OUT_THERE = "log_out_there"  # in the session


class _LoginView(auth_views.LoginView):
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        passwords = settings.HYPAC_LOCAL_LOGIN
        shown = {
            "mail_is_on": is_on() and passwords == "everybody",
            "passwords": passwords,
            "provider": settings.HYPAC_OIDC_NAME if has_sign_on() else "",
            "log_out_there": self.request.session.pop(LOG_OUT_THERE, ""),
        }
        return super().get_context_data(**shown, **kwargs)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # A part of a page asked for something after its session had ended: the whole page has to log in.
        if cast(PageRequest, request).htmx and not request.user.is_authenticated:
            return HttpResponseClientRedirect(request.get_full_path())
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        user = cast(User, form.get_user())
        before, made = user.last_login, user.reset_link_at
        response = super().form_valid(form)
        if made and (before is None or before < made) and _chose_before_link(user):
            messages.warning(self.request, _reset_link_in_words(user))
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form, tries_left=self._tries_left()))

    def _tries_left(self) -> int | None:
        """How many more failures lock this name out from here; None while it is not near. Failures are
        counted alike whether or not there is an account of the name.
        """
        limit = settings.AXES_FAILURE_LIMIT
        failures = getattr(self.request, "axes_failures_since_start", None) or 0
        return limit - failures if failures >= limit / 2 else None

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
    """Whoever came by the provider is still logged in there, and is shown where that ends."""
    id_token = request.session.get(ID_TOKEN)
    response = auth_views.LogoutView.as_view()(request)
    if id_token and (there := log_out_address(id_token=id_token, back=address_here(request, "login"))):
        request.session[LOG_OUT_THERE] = there
    return response


class _PasswordView(auth_views.PasswordChangeView):
    template_name = "registration/password.html"
    form_class = ChangePasswordForm

    def get_success_url(self) -> str:
        """Back to the link of an invitation that waited for this; other invitations are on the list."""
        return reverse("join" if IN_SESSION in self.request.session else "project_list")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your password is changed. Other devices have to log in again."))
        return super().form_valid(form)


@signed_in("GET", "POST")
def password(request: HttpRequest) -> HttpResponseBase:
    """Choose a new password; whoever got a first one from an owner should."""
    if not may_use_password(cast(User, request.user)):
        messages.error(
            request,
            _("You log in by %(provider)s, without a password here.")
            % {"provider": settings.HYPAC_OIDC_NAME},
        )
        return redirect("account")
    if request.method == "POST":
        attempts.count(request)
    return _PasswordView.as_view()(request)


@signed_in("GET", "POST")
def account(request: HttpRequest) -> HttpResponseBase:
    """What one says about oneself, and how pages look to oneself."""
    user = cast(User, request.user)
    # Of a copy: the header shows the name that is stored, also above a form with a mistake.
    form = AccountDetailsForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if request.method == "POST" and form.is_valid():
        saved = form.save()
        if "email" in form.changed_data and saved.email and is_on():
            ask_to_confirm(saved)
            messages.success(request, _("Saved. An e-mail is on its way with which you confirm the address."))
        else:
            messages.success(request, _("Saved."))
        return redirect("account")
    mine = user.memberships.filter(is_active=True, project__archived_at__isnull=True)
    mine = mine.select_related("project").defer(*(f"project__{name}" for name in LONG_COLUMNS))
    return render(
        request,
        "registration/account.html",
        {
            "form": form,
            "memberships": mine.order_by("project__name")[: limits.LISTED],
            "all": mine.count(),
            "mail_is_on": is_on(),
            "provider": "" if may_use_password(user) else settings.HYPAC_OIDC_NAME,
            "reset_link": _reset_link_in_words(user) if _chose_before_link(user) else "",
            **invitations_shown(user),
        },
    )


@signed_in("GET")
def account_data(request: HttpRequest) -> HttpResponseBase:
    """Everything that is kept about oneself. Whose it is says the session alone."""
    user = cast(User, request.user)
    return StreamingHttpResponse(
        own_data.stream(user),
        content_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="{own_data.file_name(user)}"',
            "Cache-Control": "no-store, private",
        },
    )


def _chose_before_link(user: User) -> bool:
    """Whether a link was made for the password that is in use, as far as its holder knows."""
    chosen, made = user.password_chosen_at, user.reset_link_at
    return made is not None and (chosen is None or chosen < made)


def _reset_link_in_words(user: User) -> str:
    by = user.reset_link_by
    if user.password_chosen_at is None and by is not None and (by.is_staff or by.is_superuser):
        words = _(
            "On %(when)s %(name)s set your password, or made a link with which it can be set. Choose a new "
            "one, and ask them about it if you did not want that."
        )
    elif _is_open(user):
        words = _(
            "On %(when)s %(name)s made a link with which your password can be set. If you did not ask for "
            "it, choose a new password."
        )
    else:
        words = _(
            "On %(when)s %(name)s made a link for setting your password. It has ended. If you did not ask "
            "for it, choose a new password."
        )
    return words % {
        "when": date_format(timezone.localtime(user.reset_link_at), "j M Y, H:i T"),
        "name": by.username if by else _("somebody whose account is gone"),
    }


def _is_open(user: User) -> bool:
    """Whether the link may hold still: it ends with time, and with the next log-in."""
    made = cast(datetime, user.reset_link_at)
    ended = timezone.now() > made + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    return not ended and (user.last_login is None or user.last_login < made)


class _ResetView(auth_views.PasswordResetConfirmView):
    """Django's: it keeps the token in the session and goes on without it in the address."""

    template_name = "registration/reset.html"
    form_class = ResetPasswordForm
    success_url = reverse_lazy("login")
    token_generator = tokens

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.save(commit=False)  # hashed here, before anything is locked
        with transaction.atomic():
            # Since the token was looked at, the account may have got a password of its holder's.
            stored = User.objects.select_for_update(no_key=True).get(pk=user.pk)
            if not tokens.check_token(stored, self.request.session.get(INTERNAL_RESET_SESSION_TOKEN)):
                return redirect(self.request.path)
            user.save(update_fields=["password", "password_chosen_at", "email_confirmed_at"])
            audit.record(project=None, actor=user, action="account.password_reset", target=name_of(user))
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        messages.success(self.request, _("Your password is set. Log in with it."))
        return redirect(self.get_success_url())


@public("GET", "POST")
@throttled
def reset(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Where the link leads that an owner made for somebody who lost their password."""
    if request.method == "POST":
        attempts.count(request)
    response = _ResetView.as_view()(request, uidb64=uidb64, token=token)
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


@public("GET")
def health(request: HttpRequest) -> HttpResponse:
    """200 while this process can answer and reach its database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok\n", content_type="text/plain")
