"""Who may do what: the one table role x action. Every view names the action it needs."""

from dataclasses import dataclass

from annotation.models import Membership, Project, User

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
    "items.import": LEADERS,
    "sources.edit": LEADERS,
    "predictions.view": frozenset({OWNER, MANAGER, VIEWER}),
    "runs.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "runs.edit": LEADERS,
    "label": frozenset({OWNER, MANAGER, REVIEWER, ANNOTATOR}),
    "work.decide": LEADERS,
    "deliveries.view": frozenset({OWNER, MANAGER, VIEWER}),
    "deliveries.make": LEADERS,
    "jobs.view": frozenset({OWNER, MANAGER, REVIEWER, VIEWER}),
    "jobs.edit": LEADERS,
    "audit.view": LEADERS,
}


@dataclass(frozen=True)
class Access:
    """What one person may do in one project."""

    project: Project
    user: User
    role: str

    def allows(self, action: str) -> bool:
        return self.role in ROLES_BY_ACTION[action]

    @property
    def actions(self) -> dict[str, bool]:
        """For templates: `{% if access.actions.runs_edit %}`."""
        return {action.replace(".", "_"): self.role in roles for action, roles in ROLES_BY_ACTION.items()}


def access_to(user: User, slug: str) -> Access | None:
    """The person's access to this project; None where they are no member, or there is no such project."""
    membership = (
        Membership.objects.select_related("project")
        .filter(project__slug=slug, user=user, user__is_active=True)
        .first()
    )
    return Access(membership.project, user, membership.role) if membership else None
