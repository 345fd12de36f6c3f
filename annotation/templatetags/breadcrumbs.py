"""The way from the project to the page, and the entry of the navigation that it belongs to."""

from typing import Any

from django import template
from django.template import Context

from annotation.projects.breadcrumbs import crumbs, section

register = template.Library()


@register.inclusion_tag("components/_breadcrumbs.html", takes_context=True)
def breadcrumbs(context: Context) -> dict[str, Any]:
    return {"crumbs": crumbs(context["request"], context)}


@register.simple_tag(takes_context=True)
def current_section(context: Context) -> str:
    return section(context["request"])
