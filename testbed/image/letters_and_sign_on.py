"""A mail server and an OpenID Connect provider beside the containers, and whether the site uses them."""

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from oidc_provider_mock import run_server_in_thread

from testbed.image.podman import ImageError
from testbed.image.site import Site
from testbed.mail_server import MailServer

WRITER, READER = "HyPAC <hypac@example.org>", "you@example.org"


class Beside:
    """`environment` is for the site."""

    def __init__(self, mail: MailServer, issuer: str) -> None:
        self.mail, self.issuer = mail, issuer
        self.environment = {
            "HYPAC_MAIL_URL": mail.address,
            "HYPAC_MAIL_FROM": WRITER,
            "HYPAC_OIDC_ISSUER": issuer,
            "HYPAC_OIDC_CLIENT_ID": "hypac",
            "HYPAC_OIDC_CLIENT_SECRET": "a-secret-of-the-tests",
        }

    def check(self, site: Site) -> None:
        site.execute("python", "manage.py", "sendtestemail", READER)
        if [(letter["From"], letter["To"]) for letter in self.mail.taken] != [(WRITER, READER)]:
            raise ImageError(f"The mail server has {len(self.mail.taken)} letters.")
        self._log_in(site)

    def _log_in(self, site: Site) -> None:
        """As a browser goes: to the provider and back."""
        trusted = ssl.create_default_context(cafile=site.authority)
        httpx.put(f"{self.issuer}/users/dee", json={"preferred_username": "dee"}).raise_for_status()
        with httpx.Client(base_url=site.url, verify=trusted, timeout=60) as browser:
            there = browser.get("/sign-on/")
            back = httpx.post(there.headers["Location"], data={"sub": "dee"}).headers["Location"]
            inside = browser.get(back, follow_redirects=True)
        if inside.status_code != 200 or "/login/" in str(inside.url):
            raise ImageError(f"The log-in ended at {inside.url} with {inside.status_code}.")


@contextmanager
def beside() -> Iterator[Beside]:
    mail = MailServer()
    mail.start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the provider's, a line for each request
    try:
        with run_server_in_thread(require_nonce=True) as server:
            yield Beside(mail, f"http://localhost:{server.server_port}")
    finally:
        mail.stop()
