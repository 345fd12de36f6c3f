"""What an address has to look like before anybody is asked: of the public internet, and readable in one way
only. Nothing is resolved here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpx
from django.conf import settings
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import HypacError, InputError
from annotation.failures import Failure

# --- Numbers of the public internet (IANA special-purpose address registries, RFC 6890) ---------------------

# Listed here, and not left to `is_global`, whose list differs between versions of Python.
NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # the host's own services, for a virtual machine on Azure
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only this is given out for the public internet ...
PUBLIC_V6 = IPv6Network("2000::/3")
# ... without these: protocols (Teredo among them, which wraps IPv4), documentation, 6to4 (wraps IPv4).
NOT_PUBLIC_V6 = tuple(
    IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are the IPv4 address that is reached


def is_public(address: str) -> bool:
    """Whether a numeric address lies outside every private, local, multicast and reserved range."""
    found: IPv4Address | IPv6Address = ip_address(address)
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped
        if inner is None and found in NAT64:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None:
            return found in PUBLIC_V6 and not any(found in network for network in NOT_PUBLIC_V6)
        found = inner
    return not any(found in network for network in NOT_PUBLIC_V4)


def is_named(host: str, port: int, names: Iterable[str]) -> bool:
    """Whether whoever runs the server named this host, for all ports or for this one.

    `names` are "host" or "host:port", an IPv6 address in brackets; `host` is lower case and has no brackets.
    """
    shown = f"[{host}]" if ":" in host else host
    return not {shown, f"{shown}:{port}"}.isdisjoint(names)


# --- Why there was no answer --------------------------------------------------------------------------------

KINDS = (
    "url",  # it is no address that may be asked
    "refused_address",  # it leads into the server's own network
    "resolve",  # its name is not known
    "connect",  # nobody accepts connections there
    "timeout",  # no answer, or not all of it, in time
    "reset",  # the connection ended before the answer did
    "too_large",
    "tls",
    "protocol",  # what came is no HTTP answer, or not what its header says
    "request",  # what was to be sent cannot be
)


class NetError(HypacError):
    """There was no answer; `kind` is one of KINDS. The message never holds what was sent or received."""

    def __init__(self, kind: str, why: Failure, *, permanent: bool = False, **params: Any) -> None:
        assert kind in KINDS  # noqa: S101 - a mistake of the programmer
        super().__init__(why.sentence(params), permanent=permanent, code=why.code, params=params)
        self.kind = kind


# --- Addresses as people enter them -------------------------------------------------------------------------

PORTS = {"http": 80, "https": 443}
MAX_CHARACTERS = 2_000
# Readers of addresses differ over these; no address needs them.
ODD = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f]")
INSIDE = failures.register(
    "address_inside",
    gettext_noop(
        "%(host)s is in the network of this server, where addresses that people enter may not lead. "
        "Whoever runs the server can allow it by naming it in HYPAC_PRIVATE_HOSTS."
    ),
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
        raise INSIDE.error(raised_as=InputError, where=where, host=target.host)
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
