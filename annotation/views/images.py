"""Images of items, handed out as images and as nothing else."""

from django.http import Http404, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase

from annotation.errors import HypacError
from annotation.models import Item, StoredFile
from annotation.services.files import open_file
from annotation.views.access import ProjectRequest, needs
from annotation.views.file_answers import file_response

# What the importer accepts; whatever else a file may claim to be is not sent as that.
MEDIA_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}


@needs("project.view", "GET")
def image(request: ProjectRequest, sha256: str) -> HttpResponseBase:
    """The bytes never change under their hash, so the browser may keep them; shared caches may not."""
    stored = StoredFile.objects.filter(project=request.access.project, sha256=sha256).first()
    if (
        stored is None
        or stored.media_type not in MEDIA_TYPES
        or not Item.objects.filter(image=stored).exists()
    ):
        raise Http404("no such image in this project")
    name = f"{stored.sha256[:16]}.{stored.media_type.removeprefix('image/')}"
    etag = f'"{stored.sha256}"'
    response: HttpResponseBase
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponseNotModified()
    else:
        try:
            response = file_response(open_file(stored), size=stored.size, content_type=stored.media_type)
        except HypacError as error:
            return HttpResponse(
                f"{error.message}\n", status=410 if error.permanent else 503, content_type="text/plain"
            )
    for header, value in {
        "ETag": etag,
        "Cache-Control": "private, max-age=31536000, immutable",
        "Content-Disposition": f'inline; filename="{name}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }.items():
        response.headers[header] = value
    return response
