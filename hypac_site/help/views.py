"""Documents as pages, and as what the panel beside a page shows."""

from typing import cast

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from annotation.common.access import PageRequest, signed_in
from hypac_site.help.documents import INDEX, OF_PAGE, address_of, document as document_named

DOCUMENTS = ("help_index", "help_document")


@signed_in("GET")
def help_index(request: HttpRequest) -> HttpResponseBase:
    """All documents, by who reads them."""
    return _shown(cast(PageRequest, request), INDEX)


@signed_in("GET")
def help_document(request: HttpRequest, document: str) -> HttpResponseBase:
    return _shown(cast(PageRequest, request), document)


def help_of_page(request: HttpRequest) -> dict[str, str]:
    """For templates: `help_address`, of the document that tells of the page that is shown; a document has
    none beside it.
    """
    name = request.resolver_match.url_name or "" if request.resolver_match else ""
    return {"help_address": "" if name in DOCUMENTS else address_of(OF_PAGE.get(name, INDEX))}


def _shown(request: PageRequest, name: str) -> HttpResponseBase:
    found = document_named(name)
    if found is None:
        raise Http404("no such document")
    context = {"document": found, "address": address_of(name), "is_index": name == INDEX}
    template = "help/_document.html" if request.htmx else "help/document.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
