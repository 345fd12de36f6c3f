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
}

# What stays possible in an archived project besides looking at it. Everything else is refused there, on pages
# and in the API, because both ask Access; jobs are refused once more where they are stored (annotation.jobs).
POSSIBLE_IN_THE_ARCHIVE = frozenset(
    {action for action in ROLES_BY_ACTION if action.endswith(".view")}
    | {"members.edit", "project.archive", "project.duplicate", "project.delete"}
)


@dataclass(frozen=True)
class Access:
    """What one person may do in one project."""

    project: Project
    user: User
    role: str

    def allows(self, action: str) -> bool:
        return self.role in ROLES_BY_ACTION[action] and not self.closed(action)

    def closed(self, action: str) -> bool:
        """Whether nobody may do this, because the project is archived."""
        return self.project.archived_at is not None and action not in POSSIBLE_IN_THE_ARCHIVE

    @property
    def actions(self) -> dict[str, bool]:
        """For templates: `{% if access.actions.runs_edit %}`."""
        return {action.replace(".", "_"): self.allows(action) for action in ROLES_BY_ACTION}


def access_to(user: User, slug: str) -> Access | None:
    """The person's access to this project; None where they are no member, or there is no such project."""
    membership = (
        Membership.objects.select_related("project")
        .filter(project__slug=slug, user=user, user__is_active=True, is_active=True)
        .first()
    )
    return Access(membership.project, user, membership.role) if membership else None
