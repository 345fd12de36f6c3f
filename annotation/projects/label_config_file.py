"""The labelling configuration of Label Studio as a file that a browser saves: of the page and of the API."""

from django.http import HttpResponse

from annotation.models import Project
from annotation.projects.label_studio_config import config_of


def label_config(project: Project) -> HttpResponse:
    return HttpResponse(
        config_of(project),
        content_type="application/xml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{project.slug}-config.xml"'},
    )
