"""The keys and signatures of Alipay's protocol: SHA256withRSA of sorted parameters and of parts of responses."""

import re
from base64 import b64encode
from collections.abc import Mapping

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from vendors.signin.apps import invalid_config
from vendors.signin.protocols import SignInApp

_STRING_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


def signed_object(body: bytes, name: str) -> bytes:
    """Return the bytes of the object `name` in `body`, or no bytes if it is incomplete."""
    begin = re.search(rb'"%b"\s*:\s*(?={)' % name.encode(), body)
    depth = 0
    for found in _STRING_OR_BRACE.finditer(body, begin.end() if begin else len(body)):
        depth += {b"{": 1, b"}": -1}.get(found[0], 0)
        if begin and not depth:
            return body[begin.end() : found.end()]
    return b""


def signature(key: RSAPrivateKey, form: Mapping[str, str]) -> str:
    covered = "&".join(f"{name}={form[name]}" for name in sorted(form) if form[name])
    return b64encode(key.sign(covered.encode(), PKCS1v15(), SHA256())).decode()


def private_key(app: SignInApp) -> RSAPrivateKey:
    pem = app.private_key.get_secret_value().encode()
    try:
        # A complete check of its numbers takes 25 ms. With a wrong key, Alipay refuses the first call.
        key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise invalid_config(app, "private_key must be the app's RSA key in PEM format")
    return key


def public_key(app: SignInApp) -> RSAPublicKey:
    try:
        key = load_pem_public_key(app.public_key.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey):
        raise invalid_config(app, "public_key must be Alipay's RSA key in PEM format")
    return key
