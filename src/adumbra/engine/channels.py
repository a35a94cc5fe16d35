"""Which channels a key may take: TLS, or none that leaves this machine.

Whoever reads a Dask channel sees orders, and an order holds keys. A scheduler on this machine may have
workers on another one, and they may come at any time: the driver looks at every address it sends to.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from adumbra.errors import require

RULE = "keys and sums of private rows would cross the network in the clear"


def is_safe(address: str) -> bool:
    """Whether a channel is TLS, or stays in this process or on this machine."""
    try:
        parsed = urlsplit(address if "://" in address else f"tcp://{address}")
        host = parsed.hostname or ""
    except ValueError:  # no address at all
        return False
    return parsed.scheme in {"tls", "inproc"} or (parsed.scheme == "tcp" and _is_here(host))


def require_safe(address: str, name: str = "scheduler") -> None:
    """Refuse a channel to another host that is not TLS."""
    require(is_safe(address), f"{name}={address}: {RULE}; use tls://host:port")


def _is_here(host: str) -> bool:
    """Whether a name means this machine's loopback, by every address it has."""
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):  # a name that nobody has, or that cannot be one
        return False
    return bool(found) and all(ipaddress.ip_address(one).is_loopback for one in found)
