"""The commands that create keys, tokens and signatures."""

import argparse
import io
import re

import jwt
import pytest
import yaml

from app.commands.keys import add_parser
from storage.operators.audit import COMMAND
from tests.running.servers import Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(words)
    code: int = args.run(args)
    return code


@pytest.fixture
def printed(capsys):
    """Run a command, which must succeed. Return its standard output and standard error."""

    def run_and_read(*words: str) -> tuple[str, str]:
        capsys.readouterr()
        assert run(*words) == 0
        return capsys.readouterr()

    return run_and_read


def test_keys_are_new_lines_of_the_environment_file(printed):
    values = set()
    for _ in range(2):
        out, complaints = printed("keys")
        lines = re.findall(r"(\w+)='([0-9a-f]{64})'\n", out)
        assert "".join(f"{name}='{value}'\n" for name, value in lines) == out
        assert [name for name, _ in lines] == ["PARLEY_MASTER_KEY", "PARLEY_ADMIN_TOKEN", "APP_SIGN_KEY"]
        values |= {value for _, value in lines}
        assert complaints == ""
    assert len(values) == 6


@pytest.mark.parametrize("alg", ["EdDSA", "ES256", "RS256", "HS256"])
async def test_tokens_of_a_newly_registered_key_are_accepted(server, tmp_path, printed, alg):
    uid, _ = await server.login()
    private, to_register = printed("token", "keygen", "--alg", alg, "--kid", "k1")
    key = tmp_path / "key"
    key.write_text(private)
    value = yaml.safe_load(to_register.partition(":\n\n")[2])
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)

    token, _ = printed("token", "make", "--key", str(key), "--kid", "k1", "--alg", alg, "--sub", uid)
    headers = {"X-Service-Auth-Token": token.strip()}
    async with server.http.get(f"{server.url}/bp/server/user/{uid}", headers=headers) as response:
        assert response.status == 200


def test_a_token_is_valid_for_one_call_if_it_is_asked_for(tmp_path, printed):
    private, _ = printed("token", "keygen", "--alg", "HS256")
    key = tmp_path / "key"
    key.write_text(private)

    def made(*words):
        token, _ = printed("token", "make", "--key", str(key), "--kid", "k1", "--alg", "HS256", *words)
        return jwt.decode(token.strip(), options={"verify_signature": False}).get("jti")

    assert (made(), made("--jti", "one")) == (None, "one")
    first, second = made("--jti"), made("--jti")
    assert first != second
    assert min(len(first), len(second)) > 16


async def test_signatures_made_by_the_command_are_accepted(server, tmp_path, printed, monkeypatch):
    value = {"require_sign": True, "require_nonce": True, "sign_keys": [{"id": "k", "key": "s3cret" * 6}]}
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)
    body = b'{"device": {"id": "one"}}'
    (tmp_path / "body").write_bytes(body)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))
    for source in (str(tmp_path / "body"), "-"):
        words = ("sign", "POST", "/bp/user/login", "--key", "s3cret" * 6, "--body", source, "--nonce")
        header, _ = printed(*words)
        headers = {"X-Service-Sign": header.strip()}
        async with server.http.post(server.url + "/bp/user/login", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()


def test_a_key_of_another_algorithm_makes_no_token(tmp_path, printed, capsys):
    private, _ = printed("token", "keygen", "--alg", "EdDSA")
    (tmp_path / "key").write_text(private)
    for alg in ("ES256", "RS256"):
        assert run("token", "make", "--key", str(tmp_path / "key"), "--kid", "k", "--alg", alg) == 2
        assert "cannot make a token" in capsys.readouterr().err
    assert run("token", "make", "--key", str(tmp_path / "absent"), "--kid", "k", "--alg", "EdDSA") == 2
