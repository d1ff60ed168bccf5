"""Checks of configs of kind `sign_in`, when they are written."""

from collections.abc import Callable, Iterator

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from storage.config_rules import Checked, Fault
from storage.kinds.sign_in import SignIn


def check(config: SignIn) -> Checked:
    """Check the keys and certificates of a config."""
    return Checked(config, list(_unreadable(config)))


def _unreadable(config: SignIn) -> Iterator[Fault]:
    """Yield the keys and certificates that cannot be read."""
    private_key = config.private_key.get_secret_value() if config.private_key else ""
    roots = {f"key_roots[{index}]": root for index, root in enumerate(config.key_roots)}
    checks: tuple[tuple[dict[str, str], Callable[[bytes], object], str], ...] = (
        ({"private_key": private_key}, lambda pem: load_pem_private_key(pem, password=None), "private key"),
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
