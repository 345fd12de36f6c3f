"""Invitations to take part in projects."""

from hypac_client.models import InvitationData
from hypac_client.resource import Resource


class Invitation(Resource):
    """One that is addressed to the owner of the token: `project` (its name), `role`, `invited_by`."""

    title_field = "project"
    data: InvitationData

    def accept(self) -> str:
        """Take part from now on. Returns the project's slug, for `client.projects.get`."""
        return str(self._post("accept/")["project"])

    def decline(self) -> None:
        self._post("decline/")
