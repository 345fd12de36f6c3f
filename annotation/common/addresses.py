"""Where a request comes from, as far as limits on what strangers may do are concerned."""

from ipaddress import IPv6Address, IPv6Network, ip_address

from django.http import HttpRequest

# What one household or host is given: whoever has one address of it has all of them.
HOST_PREFIX = 64


def network_of(request: HttpRequest) -> str:
    """The address that the server sees, of IPv6 the network of it; "" where it is none (a Unix socket).

    Never from a header that the asker could write: behind a proxy, `RequestMiddleware` has put into
    REMOTE_ADDR what the proxy saw.
    """
    found = address_in(str(request.META.get("REMOTE_ADDR", "")))
    if ":" not in found:
        return found
    return str(IPv6Network((int(IPv6Address(found)), HOST_PREFIX), strict=False).network_address)


def network_or_none(request: HttpRequest) -> str | None:
    """The same for django-axes, whose column knows addresses and null."""
    return network_of(request) or None


def address_in(text: str) -> str:
    """The address alone, in its normal form, of what servers and proxies write: with a port or without, IPv6
    in brackets or without, IPv4 inside IPv6. "" where there is none.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    return str(getattr(found, "ipv4_mapped", None) or found)
