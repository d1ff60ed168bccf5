"""Sign-in providers, one file each.

Each provider turns the proof that a client sends into a verified identity. A token is accepted only if the provider
says that it was issued to one of our apps, and a code only if the provider redeems it for `client_id`. A 4xx
status, or an error code in a 200 response, may mean a refused proof, a failure of the provider or a wrong secret.
Each file lists the codes of failures and wrong secrets (`ErrorCodes` in `calls.py`). Any other code refuses the
proof, because forged proofs must not open the circuit breaker. Errors contain the provider's codes but not its
messages, which may repeat a secret. `fields.py` validates ids, names and URLs of pictures.

What one person has written into a profile must not stop the sign-ins of others. So a response with texts of a
person (`personal` in `calls.py`) that begins as a JSON object is read as far as possible
(`streams/wire/damaged.py`), and never counts as a failure of the provider. It refuses the proof only if the id in
it cannot be read. Other responses contain no texts of people, so broken JSON there is a failure of the provider.
Anything that does not begin as an object, such as the page of a gateway, is one everywhere. A profile that the
provider refuses is a matter of its person, too.

Keys of sign-in providers are fetched once for all concurrent requests (`vendors/http/fetched.py`). The keys of id
tokens (`jwks.py`) are used for as long as the provider allows, between 5 minutes and 24 hours, and a day longer
while it cannot be reached. For an unknown key, the JWKS is fetched at most every 30 s, so that not every forged
token causes a call. Each key has one asymmetric algorithm, which the token's header cannot change. `id_token.py`
checks the claims itself, in the order that its docstring gives, because PyJWT parses JSON of any depth and uses the
machine's time.

Clients name the certificates of Game Center (`game_center_keys.py`). So their URL is compared as a whole before any
call, and any fault of a certificate refuses the proof. Game Center does not send the certificate of its issuer, so
the bundle contains DigiCert's root and the intermediate authority below it. If Apple changes the authority,
`key_roots` accepts another.
"""
