"""/.well-known/security.txt (RFC 9116): where people report what they find."""

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from annotation.common.access import public

LASTS = timedelta(days=90)


@public("GET")
def security_txt(request: HttpRequest) -> HttpResponse:
    if not settings.HYPAC_SECURITY_CONTACT:
        raise Http404("HYPAC_SECURITY_CONTACT is not set")
    expires = (timezone.now() + LASTS).strftime("%Y-%m-%dT%H:%M:%SZ")
    languages = ", ".join(code for code, _name in settings.LANGUAGES)
    lines = {
        "Contact": settings.HYPAC_SECURITY_CONTACT,
        "Expires": expires,
        "Preferred-Languages": languages,
    }
    text = "".join(f"{name}: {value}\n" for name, value in lines.items())
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
