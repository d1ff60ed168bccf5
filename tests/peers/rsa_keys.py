"""RSA keys. Each process makes those of a size once, because one of 2,048 bits takes 0.1 s of CPU time."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric import rsa


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)
