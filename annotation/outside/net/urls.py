"""What an address has to look like before anybody is asked. Nothing is resolved here."""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

import httpx
from django.conf import settings
from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.outside.net.addresses import is_named, is_public

PORTS = {"http": 80, "https": 443}
MAX_CHARACTERS = 2_000
# Readers of addresses differ over these; no address needs them.
ODD = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f]")
INSIDE = gettext_lazy(
    "{host} is in the network of this server, where addresses that people enter may not lead. "
    "Whoever runs the server can allow it by naming it in HYPAC_PRIVATE_HOSTS."
)


@dataclass(frozen=True)
class Target:
    """An address in its parts. `host` is ASCII, lower case, without brackets; `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: bytes
    url: httpx.URL


def check_url(url: str, *, where: str = "url") -> str:
    """`url` in its normal form, without a fragment. Raises InputError that says what is wrong with it.

    A name may still turn out to lead into the server's own network when it is asked.
    """
    try:
        target = parse(url)
    except ValueError as error:
        raise InputError(str(error), where=where) from None
    if is_private_literal(target.host) and not is_named(
        target.host, target.port, settings.HYPAC_PRIVATE_HOSTS
    ):
        raise InputError(INSIDE.format(host=target.host), where=where)
    return str(target.url)


@lru_cache(maxsize=256)
def parse(url: str) -> Target:
    """Raises ValueError with a sentence that does not repeat the address: it may hold a password."""
    url = url.strip()
    if not url or len(url) > MAX_CHARACTERS:
        raise ValueError(
            _("An address has 1 to %(max_characters)s characters.")
            % {"max_characters": f"{MAX_CHARACTERS:,}"}
        )
    if ODD.search(url):
        raise ValueError(_("An address holds no spaces, backslashes or control characters."))
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise ValueError(_("This is no address; it should look like https://example.org/path.")) from None
    if parsed.scheme not in PORTS:
        raise ValueError(_("An address starts with http:// or https://."))
    host = parsed.raw_host.decode("ascii").lower().rstrip(".")
    if not host:
        raise ValueError(_("The address names no host."))
    if parsed.userinfo:
        raise ValueError(_("Leave name and password out of the address."))
    port = PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 0 < port < 65_536:
        raise ValueError(_("The port is a number from 1 to 65535."))
    parsed = parsed.copy_with(fragment=None)
    return Target(parsed.scheme, host, port, parsed.raw_path, parsed)


def is_private_literal(host: str) -> bool:
    """Whether `host` is a number, or the one name, that needs no look-up to be known as not public."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not is_public(str(ip_address(host)))
    except ValueError:
        return False
