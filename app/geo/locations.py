"""The location of an IP address (§2.13, §4.21)."""

from dataclasses import asdict

from app.geo.addresses import HEADER, address_of
from app.http.callers.limits import check_address
from app.http.rows.endpoint import Call
from storage.configs.kinds.iplocation import IPLOCATION, IpLocation
from streams.wire.errors import BackendUnavailable, ConfigInvalid, InvalidParameter
from streams.wire.model import Model
from vendors.geo.database import UNKNOWN, Address, DamagedFile, Location
from vendors.geo.files import FileNotLoaded
from vendors.geo.ranges import has_place, plain


class IpLocationReply(Model):
    """The location of the address. `-` stands for an unknown value, and as a country, for an unassigned address."""

    country_code: str
    """ISO 3166-1, two letters."""
    country_name: str
    region: str
    city: str
    ip: str
    """The address that was looked up."""
    latitude: str
    longitude: str
    zip_code: str


async def locate(call: Call) -> IpLocationReply:
    """Locate an IP address.

    The address is read from `X-Forwarded-For`. If the config `iplocation` has trusted proxies, it is the last
    address of the header before theirs; otherwise it is the first one. Without the header, it is the caller's.
    """
    await check_address(call.services, call.app_limits, call.request, call.caller, name="iplocation")
    config = call.services.configs.singleton(IPLOCATION, call.app_id)
    asked = address_of(call.request, config.trusted_proxies or call.services.settings.trusted_proxies)
    address = plain(asked)
    found = await _find(call, config, address) if has_place(address) else UNKNOWN
    return IpLocationReply(ip=str(asked), **asdict(found))


async def _find(call: Call, config: IpLocation, address: Address) -> Location:
    if config.database is None:
        raise ConfigInvalid("iplocation default: database is not set")
    try:
        database = await call.services.geo.database(config.database)
    except FileNotLoaded as error:
        raise ConfigInvalid(f"iplocation default: database cannot be used: {error}") from None
    if address.version == 6 and not database.has_ipv6:
        raise InvalidParameter(f"{HEADER} is an IPv6 address, which the database does not have")
    try:
        return database.find(address)
    except DamagedFile as error:
        raise BackendUnavailable(f"the database of IP locations is damaged: {error}") from None
