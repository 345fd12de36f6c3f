"""The guidelines of a project: how long they may be, and their HTML, made when they are stored."""

import time

from django.utils.translation import gettext as _

from annotation.common import limits, markdown
from annotation.errors import InputError
from annotation.models import Project

AT_ONCE = 20
SECONDS_AT_ONCE = 1.0
"""So many projects' HTML is made anew in one round of the upkeep, or what is done in that time and one more:
jobs and webhooks wait meanwhile.
"""


def prepare_guidelines(project: Project, *, before: str = "") -> None:
    """Check the guidelines of a project that is to be saved, and make their HTML: save RENDERED with them.

    Those of an earlier version may be longer than limits.GUIDELINES and stay as they are, `before`. Raises
    InputError for others that are too long.
    """
    plain = refuse_too_long(project.guidelines, before=before)
    project.guidelines_html = markdown.render(plain) or ""
    project.guidelines_version = markdown.VERSION


def refuse_too_long(text: str, *, before: str = "") -> str:
    """The guidelines as they are read. Raises InputError as `prepare_guidelines` does."""
    plain = with_plain_lines(text)  # browsers send two characters for the end of a line
    if len(plain) > limits.GUIDELINES and plain != with_plain_lines(before):
        raise InputError(
            _("The guidelines have %(count)s characters, and at most %(most)s fit. Shorten them.")
            % {"count": f"{len(plain):,}", "most": f"{limits.GUIDELINES:,}"},
            where="guidelines",
        )
    return plain


RENDERED = ("guidelines_html", "guidelines_version")


def render_outdated() -> None:
    """Make the HTML of some guidelines that were stored under another version of the renderer. For the
    reconciler, which comes again for the rest.
    """
    outdated = Project.objects.exclude(guidelines_version=markdown.VERSION).only("pk", "guidelines")
    until = time.monotonic() + SECONDS_AT_ONCE
    for project in outdated.order_by("pk")[:AT_ONCE]:
        same = Project.objects.filter(pk=project.pk, guidelines=project.guidelines)
        html = markdown.render(with_plain_lines(project.guidelines)) or ""
        same.update(guidelines_html=html, guidelines_version=markdown.VERSION)
        if time.monotonic() >= until:
            break


def with_plain_lines(text: str) -> str:
    """A browser sends other ends of lines than it was given."""
    return text.replace("\r\n", "\n")
