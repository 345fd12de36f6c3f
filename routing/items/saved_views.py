"""Views of the table under a name: a person's own, and those that managers keep for all of the project."""

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.permissions import Access
from routing.items.table_query import table_request
from routing.models import SavedView
from routing.visibility import ViewPermission

MOST = 30
"""Of one person, and of the project."""
LONGEST = 60


def views_of(access: Access) -> QuerySet[SavedView]:
    """The person's own and the project's."""
    return access.project.saved_views.filter(Q(owner=access.user) | Q(owner__isnull=True))


def may_share(access: Access) -> bool:
    return access.allows("project.edit")


def save_view(
    *, access: Access, permission: ViewPermission, name: str, query: str, shared: bool = False
) -> SavedView:
    """Keep what the address of the table asks for, `query`, under a name; of what cannot be used nothing is
    kept.

    Raises InputError whose `where` is "name", ConflictError where the name is taken or there are too many,
    and NotAllowedError for a shared one of somebody who may not change the project.
    """
    if shared and not may_share(access):
        raise NotAllowedError(_("Managers keep views for all of the project. Save it for yourself."))
    name = _checked(name)
    owner = None if shared else access.user
    asked = table_request(QueryDict(query), permission)
    with transaction.atomic():
        locked_project(access.project.pk)
        if access.project.saved_views.filter(owner=owner).count() >= MOST:
            raise ConflictError(
                _("There are %(most)s such views already. Delete one first.") % {"most": MOST},
                code="too_many_views",
            )
        view = SavedView(project=access.project, owner=owner, name=name, query=asked.query())
        _store(view)
        _record(access, view, "view.saved")
    return view


def rename_view(*, access: Access, view: SavedView, name: str) -> SavedView:
    """Raises as `delete_view` and `save_view` do."""
    _refuse_shared(access, view)
    with transaction.atomic():
        view.name = _checked(name)
        _store(view)
        _record(access, view, "view.renamed")
    return view


def delete_view(*, access: Access, view: SavedView) -> None:
    """Raises ConflictError for a view of the project, where this person may not change that."""
    _refuse_shared(access, view)
    with transaction.atomic():
        _record(access, view, "view.deleted")
        view.delete()


def _checked(name: str) -> str:
    name = checked_line(" ".join(name.split()), where="name")
    if not name or len(name) > LONGEST:
        raise InputError(
            _("Give the view a name of at most %(most)s characters.") % {"most": LONGEST}, where="name"
        )
    return name


def _refuse_shared(access: Access, view: SavedView) -> None:
    if view.owner_id is None and not may_share(access):
        raise ConflictError(_("Only managers change views of the project."), code="view_of_project")


def _store(view: SavedView) -> None:
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError:
        raise ConflictError(
            _("There is a view called “%(name)s” already.") % {"name": view.name},
            where="name",
            code="view_name_taken",
        ) from None


def _record(access: Access, view: SavedView, action: str) -> None:
    """Of the project's alone: a person's own concern nobody else."""
    if view.owner_id is None:
        audit.record(
            project=access.project,
            actor=access.user,
            action=action,
            target=f"view:{view.pk}",
            data={"name": view.name},
        )
