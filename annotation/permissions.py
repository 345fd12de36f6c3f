"""Who may do what: the one table role x action. Every view names the action it needs."""

from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.models import ApiToken, Membership, Project, User

Role = Membership.Role
OWNER, MANAGER, REVIEWER, ANNOTATOR, VIEWER = (
    Role.OWNER,
    Role.MANAGER,
    Role.REVIEWER,
    Role.ANNOTATOR,
    Role.VIEWER,
)

EVERYBODY = frozenset({OWNER, MANAGER, REVIEWER, ANNOTATOR, VIEWER})
LEADERS = frozenset({OWNER, MANAGER})

ROLES_BY_ACTION: dict[str, frozenset[str]] = {
    "project.view": EVERYBODY,
    "project.edit": LEADERS,
    "members.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "members.edit": frozenset({OWNER}),
    "items.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "views.edit": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "items.import": LEADERS,
    "items.erase": LEADERS,
    "sources.edit": LEADERS,
    "predictions.view": frozenset({OWNER, MANAGER, VIEWER}),
    "runs.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "runs.edit": LEADERS,
    "label": frozenset({OWNER, MANAGER, REVIEWER, ANNOTATOR}),
    "work.decide": LEADERS,
    "review": frozenset({OWNER, MANAGER, REVIEWER}),
    "agreement.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "project.archive": LEADERS,
    "project.duplicate": LEADERS,
    "project.delete": frozenset({OWNER}),
    "deliveries.view": frozenset({OWNER, MANAGER, VIEWER}),
    "deliveries.make": LEADERS,
    "jobs.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "jobs.edit": LEADERS,
    "audit.view": LEADERS,
    "connections.view": LEADERS,
    "connections.edit": LEADERS,
    "webhooks.view": LEADERS,
    "webhooks.edit": LEADERS,
}

# What stays possible in an archived project besides looking at it. Everything else is refused there, on pages
# and in the API, because both ask Access; jobs are refused once more where they are stored
# (annotation.jobs.jobs).
POSSIBLE_IN_THE_ARCHIVE = frozenset(
    {action for action in ROLES_BY_ACTION if action.endswith(".view")}
    | {"items.erase", "members.edit", "project.archive", "project.duplicate", "project.delete"}
)


def _active() -> QuerySet[Membership]:
    """The memberships that let somebody in."""
    return Membership.objects.filter(is_active=True, user__is_active=True)


def members_who_label(project_id: int) -> QuerySet[Membership]:
    """The memberships of a project whose people may label now."""
    return _active().filter(project=project_id, role__in=ROLES_BY_ACTION["label"])


@dataclass(frozen=True)
class Access:
    """What one person may do in one project; `cap` is the role of the token that a program shows, if any."""

    project: Project
    user: User
    role: str
    cap: str = ""

    def allows(self, action: str) -> bool:
        """What both the person's role and the cap may."""
        roles = ROLES_BY_ACTION[action]
        return self.role in roles and (not self.cap or self.cap in roles) and not self.closed(action)

    def closed(self, action: str) -> bool:
        """Whether nobody may do this, because the project is archived."""
        return self.project.archived_at is not None and action not in POSSIBLE_IN_THE_ARCHIVE

    @property
    def actions(self) -> dict[str, bool]:
        """For templates: `{% if access.actions.runs_edit %}`."""
        return {action.replace(".", "_"): self.allows(action) for action in ROLES_BY_ACTION}


def access_to(user: User, slug: str, token: ApiToken | None = None) -> Access | None:
    """The person's access to this project, by this token; None where they are no member, where the token is
    for another project, or there is no such project.
    """
    membership = _active().select_related("project").filter(project__slug=slug, user=user).first()
    if membership is None or (token and token.project_id not in (None, membership.project_id)):
        return None
    return Access(membership.project, user, membership.role, token.role if token else "")


def access_by(membership_id: int) -> Access | None:
    """The access that a membership gives now; None where it has ended, or is not active."""
    membership = _active().select_related("project", "user").filter(pk=membership_id).first()
    return None if membership is None else Access(membership.project, membership.user, membership.role)
