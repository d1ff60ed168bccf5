"""Key material that verifies server tokens: the public key or the secret of a `ServerKey`."""

from functools import lru_cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from storage.configs.kinds.auth import ServerKey

PublicKey = Ed25519PublicKey | EllipticCurvePublicKey | RSAPublicKey
_SECRET_BYTES = 32
_RSA_BITS = 2048


class InvalidKey(Exception):
    """A `field` of a server key keeps it from verifying tokens. `problem` follows the name of the field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


def key_material(key: ServerKey) -> PublicKey | bytes:
    """Return the key material that verifies tokens. Raises `InvalidKey`."""
    if key.alg != "HS256":
        return _public_key(key.alg, key.public_key or "")
    secret = key.secret.get_secret_value().encode() if key.secret else b""
    if len(secret) < _SECRET_BYTES:
        raise InvalidKey("secret", f"must be at least {_SECRET_BYTES} bytes for HS256")
    return secret


@lru_cache(maxsize=256)
def _public_key(alg: str, pem: str) -> PublicKey:
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidKey("public_key", "must be the PEM of a public key") from None
    if alg == "EdDSA" and isinstance(key, Ed25519PublicKey):
        return key
    if alg == "ES256" and isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key
    if alg == "RS256" and isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS:
        return key
    raise InvalidKey("public_key", f"must be a key for {alg}")
