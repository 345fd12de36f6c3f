"""A mail server on the loopback address that takes letters, or answers as is asked of it."""

from collections import deque
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from testbed.servers import free_port


class MailServer(Controller):
    """`taken` holds the letters; each answer in `script` is given to one in place of taking it."""

    def __init__(self) -> None:
        super().__init__(self, hostname="127.0.0.1", port=free_port())
        self.taken: list[EmailMessage] = []
        self.script: deque[str] = deque()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        said = self.script.popleft() if self.script else "250 taken"
        if said == "hang up":
            server.transport.close()
            return "451 gone"
        if said.startswith("250"):
            letter = message_from_bytes(envelope.content or b"", policy=policy.default)
            self.taken.append(letter)  # type: ignore[arg-type]
        return said

    @property
    def address(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=no"


def words_of(letter: EmailMessage) -> str:
    """Its plain text."""
    part = letter.get_body(("plain",))
    assert part is not None
    return str(part.get_content())
