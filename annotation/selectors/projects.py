"""Reading projects."""

from django.db.models import F, QuerySet

from annotation.models import Project, User


def projects_of(user: User) -> QuerySet[Project]:
    """Projects that the person is a member of, by name, each with their `role`."""
    return (
        Project.objects.filter(memberships__user=user, archived_at__isnull=True)
        .annotate(role=F("memberships__role"))
        .order_by("name", "id")
    )
