"""Who may open a page. Every view carries one of these three marks, so that a test can read it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import Resolver404, resolve
from django.utils.cache import patch_cache_control
from django_htmx.middleware import HtmxDetails

from annotation.errors import HypacError, NotAllowedError
from annotation.models import User
from annotation.permissions import ROLES_BY_ACTION, Access, access_to

View = Callable[..., HttpResponseBase]


class PageRequest(HttpRequest):
    """A request of somebody who is logged in, as the middleware leaves it."""

    user: User
    htmx: HtmxDetails


class ProjectRequest(PageRequest):
    """A request on a project that the person may make."""

    access: Access


def public(*methods: str) -> Callable[[View], View]:
    """For everybody, without logging in."""

    def decorate(view: View) -> View:
        return login_not_required(_marked(_only(view, methods), "public", methods))

    return decorate


def signed_in(*methods: str) -> Callable[[View], View]:
    """For everybody who is logged in (the login middleware sees to it); the view belongs to no project."""

    def decorate(view: View) -> View:
        return _marked(_only(view, methods), "signed_in", methods)

    return decorate


def needs(action: str, *methods: str) -> Callable[[View], View]:
    """For members of the project `slug` whose role has `action`; the view finds `request.access`.

    Somebody who is no member gets 404, as for a project that does not exist; a role that may not, 403; only
    after that a method other than `methods` (GET where none is named) gets 405. Who comes by GET where a form
    leads, as by the address that one was refused at, is sent to the page above it, which has the form.
    """
    if action not in ROLES_BY_ACTION:
        raise ValueError(f"annotation.permissions knows no action {action!r}")

    def decorate(view: View) -> View:
        handle = _only(view, methods)

        @wraps(view)
        def guarded(request: HttpRequest, slug: str, **kwargs: Any) -> HttpResponseBase:
            access = access_to(cast(User, request.user), slug)
            if access is None:
                raise Http404("no such project, or no member of it")
            cast(ProjectRequest, request).access = access
            if not access.allows(action):
                raise PermissionDenied(action)
            if request.method in ("GET", "HEAD") and methods and "GET" not in methods:
                return redirect(_page_above(request, access))
            try:
                return handle(request, **kwargs)
            except NotAllowedError as error:
                raise PermissionDenied(str(error)) from error

        return _marked(guarded, action, methods)

    return decorate


def _page_above(request: HttpRequest, access: Access) -> str:
    """The nearest page above an address that the person may see; the project's own, where there is none
    nearer.
    """
    mounted = request.path.removesuffix(request.path_info)
    above = request.path_info.rstrip("/")
    while above := above.rpartition("/")[0]:
        try:
            view: Any = resolve(f"{above}/").func
        except Resolver404:
            continue
        action = getattr(view, "needed_action", "")
        if "GET" in getattr(view, "methods", ()) and action in ROLES_BY_ACTION and access.allows(action):
            return f"{mounted}{above}/"
    return f"{mounted}/"


def takes_files(view: View) -> View:
    """Let the view's requests be as large as an upload may be (hypac_site.middleware)."""
    view.takes_files = True  # type: ignore[attr-defined]
    return view


@contextmanager
def refusals_as_messages(request: HttpRequest) -> Iterator[None]:
    """Turn what a service refuses into a message on the next page."""
    try:
        yield
    except NotAllowedError:
        raise
    except HypacError as error:
        messages.error(request, str(error))


def _only(view: View, methods: tuple[str, ...]) -> View:
    allowed = _with_head(methods)

    @wraps(view)
    def checked(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if request.method not in allowed:
            return HttpResponseNotAllowed(allowed)
        response = view(request, **kwargs)
        if not response.has_header("Cache-Control"):
            # What a person may see may change, and the next person at this computer may see less.
            patch_cache_control(response, private=True, no_cache=True)
        return response

    return checked


def _with_head(methods: tuple[str, ...]) -> tuple[str, ...]:
    methods = methods or ("GET",)
    return (*methods, "HEAD") if "GET" in methods else methods


def _marked(view: View, action: str, methods: tuple[str, ...]) -> View:
    view.needed_action = action  # type: ignore[attr-defined]
    view.methods = _with_head(methods)  # type: ignore[attr-defined]
    return view
