"""Checks of configs of kind `sign_in`, when they are written."""

from collections.abc import Callable, Iterator

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from actors.clients import sign_in as sign_in_clients
from storage.configs.kinds.sign_in import PLATFORMS, SignIn
from storage.configs.rules import Checked, Fault
from streams.wire.errors import ConfigInvalid


def check(platform: str, config: SignIn) -> Checked:
    """Check whether users can sign in with the config of a platform.

    Missing fields only cause warnings, because a config may be completed later. Until then, logins get
    `config_invalid`.
    """
    if faults := list(_unreadable(config)):
        return Checked(config, faults)
    return Checked(config, warnings=list(_insufficient(platform, config)) or list(_suspicious(config)))


def _unreadable(config: SignIn) -> Iterator[Fault]:
    """Yield the keys and certificates that cannot be read."""
    private_key = config.private_key.get_secret_value() if config.private_key else ""
    roots = {f"key_roots[{index}]": root for index, root in enumerate(config.key_roots)}
    checks: tuple[tuple[dict[str, str], Callable[[bytes], object], str], ...] = (
        ({"private_key": private_key}, _load_private_key, "private key"),
        ({"public_key": config.public_key}, load_pem_public_key, "public key"),
        (roots, load_pem_x509_certificate, "certificate"),
    )
    for fields, load, what in checks:
        for path, pem in fields.items():
            try:
                if pem:
                    load(pem.encode())
            except (ValueError, TypeError, UnsupportedAlgorithm):
                yield Fault(path, f"must be a {what} in PEM format without a password")


def _load_private_key(pem: bytes) -> object:
    """Load a key without the slow test of its numbers. The client of the provider performs that test."""
    return load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)


def _insufficient(platform: str, config: SignIn) -> Iterator[Fault]:
    """Yield the faults that keep the provider's client from being created. A disabled platform needs no fields."""
    if not config.enabled or platform not in PLATFORMS:  # Only validated values may have another name.
        return
    try:
        sign_in_clients.check(platform, config)
    except ConfigInvalid as error:
        path, _, problem = error.what.removeprefix(f"sign_in {platform}: ").partition(" ")
        yield Fault(path, problem)


def _suspicious(config: SignIn) -> Iterator[Fault]:
    if config.client_id and config.audiences and config.client_id not in config.audiences:
        yield Fault("client_id", "is not one of audiences, so proofs that were issued to it are refused")
