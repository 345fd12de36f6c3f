"""Which addresses belong to the public internet (IANA special-purpose address registries, RFC 6890)."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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
