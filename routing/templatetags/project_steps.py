"""How far a new project is, for the list of steps on its first pages."""

from django import template

from annotation.models import Project
from routing.models import Source

register = template.Library()


@register.simple_tag
def steps_done(project: Project | str | None) -> dict[str, bool]:
    """Which of the steps have something to show: `items`, `sources`."""
    if not isinstance(project, Project):  # a project that is still to be made
        return {"items": False, "sources": False}
    return {
        "items": project.items.exists(),
        "sources": Source.objects.filter(project=project).exists(),
    }
