"""Operators for ledger tests: keys, enrolment, and logins whose rights the database knows."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adumbra.attestation.events import RIGHTS
from adumbra.attestation.signers import FileSigner
from adumbra.privacy.ledger import open_ledger
from support.ledger import server


@cache
def signer(name):
    """A key that depends on its name alone."""
    return FileSigner(Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b".")))


def enrol_each(ledger):
    """One operator per right, by the name of the right; and one with all of them."""
    for right in RIGHTS:
        ledger.enrol(signer(right).public, [right], name=f"the one who may {right}")
    ledger.enrol(signer("all").public, RIGHTS)


def as_operator(location, name):
    """The ledger, opened with the key of an operator; as the owner of the database."""
    return open_ledger(location, operator=signer(name))


def grant_logins(location, ledger, prefix):
    """Run the printed grants, then make a login per right; returns right -> its address."""
    owner = server()
    schema = location.rpartition("%3D")[2]
    owner._sql(f"SET search_path = {schema}; {ledger.grants(prefix)}")
    addresses = {}
    for right in RIGHTS:
        login = f"{prefix}_login_{right}"
        owner._sql(f"CREATE ROLE {login} LOGIN; GRANT {prefix}_{right} TO {login}")
        addresses[right] = location.replace("adumbra@", f"{login}@")
    return addresses
