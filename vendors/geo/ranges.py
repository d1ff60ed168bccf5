"""The IP addresses that can have a location."""

from ipaddress import IPv4Address, IPv6Address

from vendors.geo.database import Address


def plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address contains (mapped, 6to4 or Teredo), or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    return address.teredo[1] if address.teredo is not None else address


def has_place(address: Address) -> bool:
    """Return whether an address is neither private nor reserved, nor of a group of receivers."""
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
