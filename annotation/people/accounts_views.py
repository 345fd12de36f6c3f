"""Logging in and out, one's own account and password, and the page that says the server is alive."""

import time
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout as auth_logout, update_session_auth_hash, views as auth_views
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django_htmx.http import HttpResponseClientRedirect

from annotation.common import limits
from annotation.common.access import PageRequest, public, signed_in
from annotation.common.mail import ask_to_confirm, is_on
from annotation.errors import HypacError
from annotation.models import User
from annotation.models.projects import LONG_COLUMNS
from annotation.people import attempt_limits, own_data
from annotation.people.attempt_limits import throttled
from annotation.people.erase import erase_person, erasure_in_words
from annotation.people.forms import AccountDetailsForm, ChangePasswordForm, ResetPasswordForm
from annotation.people.invitations_views import IN_SESSION, invitations_shown
from annotation.people.log_in import has_sign_on, may_use_password
from annotation.people.password_links import chose_before_link, link_in_words, tokens
from annotation.people.second_factor import steps
from annotation.people.second_factor.change import note
from annotation.people.second_factor.forms import PasswordForm
from annotation.people.second_factor.policy import has_second_factor
from annotation.people.sessions import end_others
from annotation.people.sign_on import log_out_address
from annotation.people.sign_on_views import ID_TOKEN, SIGNED_ON_AT, address_here

LOG_OUT_THERE = "log_out_there"  # in the session
ERASED_WITHIN = 600  # seconds
PASSWORD_FIELDS = ["password", "password_chosen_at", "email_confirmed_at"]


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
        user, wanted = cast(User, form.get_user()), self.get_success_url()
        if has_second_factor(user):
            steps.begin(self.request, user, wanted)
            return redirect("second_step")
        steps.log_in(self.request, user)
        return redirect(wanted)

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
        return steps.safe_next(super().get_redirect_url(*args, **kwargs))


@public("GET", "POST")
def login(request: HttpRequest) -> HttpResponseBase:
    return _LoginView.as_view()(request)


@public("GET", "POST")
def admin_login(request: HttpRequest) -> HttpResponseBase:
    """In place of Django's own for the administration, which knows no second step."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied
    return login(request)


@signed_in("POST")
def logout(request: HttpRequest) -> HttpResponseBase:
    """Whoever came by the provider is still logged in there, and is shown where that ends."""
    id_token = request.session.get(ID_TOKEN)
    auth_logout(request)
    response = redirect("login")
    # Images and files that the browser was allowed to keep. Not what it stores: answers may wait there.
    response.headers["Clear-Site-Data"] = '"cache"'
    if id_token and (there := log_out_address(id_token=id_token, back=address_here(request, "login"))):
        request.session[LOG_OUT_THERE] = there
    return response


@signed_in("POST")
def log_out_elsewhere(request: HttpRequest) -> HttpResponseBase:
    end_others(request, cast(User, request.user))
    messages.success(request, _("All other sessions have ended: elsewhere you have to log in again."))
    return redirect("account")


class _PasswordView(auth_views.PasswordChangeView):
    template_name = "registration/password.html"
    form_class = ChangePasswordForm

    def get_success_url(self) -> str:
        """Back to the link of an invitation that waited for this; other invitations are on the list."""
        return reverse("join" if IN_SESSION in self.request.session else "project_list")

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.save(commit=False)  # hashed here, before anything is locked
        with transaction.atomic():
            user.save(update_fields=PASSWORD_FIELDS)
            note(user, "account.password_changed", by=user)
        update_session_auth_hash(self.request, user)
        messages.success(self.request, _("Your password is changed. Other devices have to log in again."))
        return redirect(self.get_success_url())


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
        attempt_limits.count(request)
    return _PasswordView.as_view()(request)


@signed_in("GET", "POST")
def account(request: HttpRequest) -> HttpResponseBase:
    """What one says about oneself, and how pages look to oneself."""
    user = cast(User, request.user)
    # Of a copy: the header shows the name that is stored, also above a form with a mistake.
    form = AccountDetailsForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            if "email" in form.changed_data:
                note(user, "account.email_changed", by=user)  # to the address that it had
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
            "reset_link": link_in_words(user) if chose_before_link(user) else "",
            "has_second_factor": has_second_factor(user),
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


@signed_in("POST")
@sensitive_post_parameters("password")
def account_erase(request: HttpRequest) -> HttpResponseBase:
    """Whose name is typed: one's own, or for administrators anybody's."""
    me, typed = cast(User, request.user), request.POST.get("typed", "").strip()
    if words := _not_shown_to_be(me, request):
        messages.error(request, words)
        return redirect("account")
    other = User.objects.filter(username=typed).first() if me.is_superuser else None
    try:
        done = erase_person(user=other or me, actor=me, typed=typed)
    except HypacError as error:
        messages.error(request, str(error))
        return redirect("account")
    if other is not None and other.pk != me.pk:
        messages.success(request, erasure_in_words(done))
        return redirect("account")
    auth_logout(request)
    messages.success(request, erasure_in_words(done))
    return redirect("login")


def _not_shown_to_be(user: User, request: HttpRequest) -> str:
    """Why it may be somebody else who found an open session, in words; "" for whoever gave the password
    again, or came from the provider a moment ago.
    """
    if not may_use_password(user):
        if time.time() - request.session.get(SIGNED_ON_AT, 0) < ERASED_WITHIN:
            return ""
        words = _("Nothing was erased. Log out, log in by %(provider)s again, and erase within ten minutes.")
        return words % {"provider": settings.HYPAC_OIDC_NAME}
    if PasswordForm(request.POST, request=request, user=user).is_valid():
        return ""
    return _("Nothing was erased: that is not your password.")


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
            user.save(update_fields=PASSWORD_FIELDS)
            note(user, "account.password_reset", by=user)
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        messages.success(self.request, _("Your password is set. Log in with it."))
        return redirect(self.get_success_url())


@public("GET", "POST")
@throttled
def reset(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Where the link leads that an owner made for somebody who lost their password."""
    if request.method == "POST":
        attempt_limits.count(request)
    response = _ResetView.as_view()(request, uidb64=uidb64, token=token)
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


@public("GET")
def health(request: HttpRequest) -> HttpResponse:
    """200 while this process can answer and reach its database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")
