"""The commands `python -m app keys`, `sign` and `token`, which make secrets and the headers of §5."""

import argparse
import asyncio
import secrets
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt import PyJWTError

from app.http.callers.tokens import make_server_token, sign_header

SECRETS = ("PARLEY_MASTER_KEY", "PARLEY_ADMIN_TOKEN", "APP_SIGN_KEY")
"""The secrets of a new deployment, and a key of an app for signatures."""
ALGORITHMS = ("EdDSA", "ES256", "RS256", "HS256")
_PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def add_parser(subparsers: Any) -> None:
    """Add the commands `keys`, `sign` and `token`. `args.run(args)` runs one and returns the exit code."""
    title = "print new secrets as lines of the environment file"
    keys = subparsers.add_parser("keys", help=title, description=title)
    keys.add_argument(
        "--replace-lost",
        action="store_true",
        help="print nothing: make PARLEY_MASTER_KEY the key of this deployment, although the one before is lost",
    )
    keys.set_defaults(run=run_keys)

    sign = subparsers.add_parser("sign", help="print the X-Service-Sign header of a request")
    sign.add_argument("method", metavar="METHOD", help="the HTTP method, such as POST")
    sign.add_argument("path", metavar="PATH", help="path and query, exactly as they will be sent")
    sign.add_argument("--key", required=True, help="one of the app's sign_keys")
    sign.add_argument(
        "--body", metavar="FILE", help="the body, or the parameters at its start; - for standard input"
    )
    sign.add_argument("--nonce", action="store_true", help="make the signature valid for one request only")
    sign.set_defaults(run=run_sign)

    token = subparsers.add_parser("token", help="create keys and tokens for X-Service-Auth-Token")
    actions = token.add_subparsers(dest="action", required=True)
    keygen = actions.add_parser("keygen", help="print a new private key and the config that registers it")
    keygen.add_argument("--alg", choices=ALGORITHMS, default="EdDSA", help="algorithm (default: %(default)s)")
    keygen.add_argument("--kid", help="name of the key (default: a random one)")
    keygen.set_defaults(run=run_keygen)
    make = actions.add_parser("make", help="print a token")
    make.add_argument("--key", required=True, type=Path, metavar="FILE", help="file with the private key or secret")
    make.add_argument("--kid", required=True, help="name of the key, as registered")
    make.add_argument("--alg", required=True, choices=ALGORITHMS, help="algorithm of the key")
    make.add_argument("--app", default="default", help="the app, claim `iss` (default: %(default)s)")
    make.add_argument("--audience", default="parley", help="claim `aud` (default: %(default)s)")
    make.add_argument(
        "--ttl", type=int, default=600, metavar="SECONDS", help="validity of the token (default: %(default)s)"
    )
    make.add_argument("--sub", metavar="UID", help="restrict the token to paths of this user")
    make.add_argument(
        "--scope", metavar="SCOPES", help="restrict the token to endpoints of these scopes, separated by spaces"
    )
    make.add_argument(
        "--jti",
        metavar="ID",
        nargs="?",
        const="",
        help="make the token valid for one call only (default: a random ID)",
    )
    make.set_defaults(run=run_make)


def run_keys(args: argparse.Namespace) -> int:
    if args.replace_lost:
        return _replace_lost()
    sys.stdout.writelines(f"{name}='{secrets.token_hex(32)}'\n" for name in SECRETS)
    return 0


def _replace_lost() -> int:
    from app.observing.logs import STDERR  # noqa: PLC0415 - slow to import
    from app.observing.logs import configure as configure_logs  # noqa: PLC0415
    from app.settings import Settings  # noqa: PLC0415
    from app.stores import replace_master_key  # noqa: PLC0415

    configure_logs(level="error", output=STDERR)
    undecryptable = asyncio.run(replace_master_key(Settings.from_env()))
    sys.stdout.write("PARLEY_MASTER_KEY is the key of this deployment\n")
    sys.stdout.writelines(f"write the secrets of {'/'.join(key)} again\n" for key in undecryptable)
    return 0


def run_sign(args: argparse.Namespace) -> int:
    header = sign_header(
        args.key,
        method=args.method,
        path_and_query=args.path,
        body=_body(args.body),
        nonce=secrets.token_urlsafe(16) if args.nonce else None,
    )
    sys.stdout.write(f"{header}\n")
    return 0


def _body(source: str | None) -> bytes:
    if source is None:
        return b""
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def run_keygen(args: argparse.Namespace) -> int:
    """Write the private key to standard output, to be stored in a file, and instructions to standard error."""
    kid = args.kid or f"{args.alg.lower()}-{secrets.token_hex(4)}"
    private, public_field = new_key(args.alg)
    sys.stdout.write(private)
    sys.stderr.write(
        f"Register it under server_keys in the app's config `auth default`:\n\n"
        f"server_keys:\n  - kid: {kid}\n    alg: {args.alg}\n{indent(public_field, '    ')}"
    )
    return 0


def new_key(alg: str) -> tuple[str, str]:
    """Return a private key (PEM, or a secret for HS256) and the YAML field that registers it with the server."""
    if alg == "HS256":
        secret = secrets.token_urlsafe(32)
        return f"{secret}\n", f'secret: "{secret}"\n'
    key: _PrivateKey
    if alg == "EdDSA":
        key = ed25519.Ed25519PrivateKey.generate()
    elif alg == "ES256":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return private, f"public_key: |\n{indent(public, '  ')}"


def run_make(args: argparse.Namespace) -> int:
    try:
        token = make_server_token(
            kid=args.kid,
            alg=args.alg,
            key=args.key.read_text().strip(),
            app_id=args.app,
            audience=args.audience,
            ttl_s=args.ttl,
            sub=args.sub,
            scope=args.scope,
            jti=args.jti if args.jti != "" else secrets.token_urlsafe(16),
        )
    except OSError as error:
        sys.stderr.write(f"parley: cannot read the key file {args.key}: {(error.strerror or '').lower()}\n")
        return 2
    except (ValueError, TypeError, PyJWTError) as error:
        sys.stderr.write(f"parley: cannot make a token with {args.key} as a key for {args.alg}: {error}\n")
        return 2
    sys.stdout.write(f"{token}\n")
    return 0
