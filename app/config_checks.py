"""The checks of configs when they are written, beyond the models of their kinds.

A model refuses a value also when it is read, which stops the use of its config. The checks here only keep values
from being written. What they find in a value that was stored before is shown as its warnings.
"""

from collections.abc import Iterator

from storage.config_rows import ConfigKey
from storage.config_rules import Checked, Fault, Named, Unknown
from storage.kinds.apps import App
from storage.kinds.auth import SIGN_KEY_BYTES, Auth
from storage.kinds.server_keys import InvalidKey, key_material
from storage.kinds.sign_in import SignIn
from streams.wire.model import Model
from streams.wire.money import exponent_of


def check(key: ConfigKey, value: Model, named: Named, unknown: Unknown) -> Checked:
    """Check a value of any kind. See `storage.config_rules.Check`."""
    match value:
        case App():
            return Checked(value, list(_currency_faults(value)))
        case Auth():
            return Checked(value, list(_key_faults(value)))
        case SignIn():
            from app import sign_in_checks  # noqa: PLC0415 - slow to import, and few commands write configs

            return sign_in_checks.check(value)
    from app import vendor_checks  # noqa: PLC0415 - slow to import, and few commands write configs

    return vendor_checks.check(value, named, unknown)


def _currency_faults(app: App) -> Iterator[Fault]:
    try:
        exponent_of(app.currency)
    except ValueError as error:
        yield Fault("currency", str(error))


def _key_faults(auth: Auth) -> Iterator[Fault]:
    """Yield the keys that anybody could guess, and those that verify nothing."""
    for index, sign_key in enumerate(auth.sign_keys):
        if len(sign_key.key.get_secret_value().encode()) < SIGN_KEY_BYTES:
            yield Fault(f"sign_keys[{index}].key", f"must be at least {SIGN_KEY_BYTES} bytes")
    for index, server_key in enumerate(auth.server_keys):
        try:
            key_material(server_key)
        except InvalidKey as error:
            yield Fault(f"server_keys[{index}].{error.field}", error.problem)
