"""Grants: fresh secrets, declared purposes, one process."""

import copy
import dataclasses
import pickle  # noqa: TID251  (to see that it is refused)
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from adumbra.errors import InvalidInput, NoiseKeyReused
from adumbra.privacy import grant as grants
from adumbra.privacy.grant import Grant, open_grant
from support.noise import GUARANTEE

FORKED = """
import os
import numpy as np
from adumbra.errors import NoiseKeyReused
from adumbra.numerics import Lattice
from adumbra.privacy.grant import open_grant
from adumbra.privacy.noise import add_gaussian

grant = open_grant("entry", None, ("rows",), "head")
key = grant.key("rows")
value = Lattice(np.arange(3), 0)
refused = 0
child = os.fork()
if child == 0:
    for use in (lambda: grant.key("rows"), lambda: add_gaussian(value, 1.0, key)):
        try:
            use()
        except NoiseKeyReused:
            refused += 1
    os._exit(refused)
status = os.waitpid(child, 0)[1]
add_gaussian(value, 1.0, key)  # the parent goes on
raise SystemExit(os.waitstatus_to_exitcode(status) != 2)
"""


def a_grant():
    return open_grant("entry-1", GUARANTEE, ("rows", "sums"), "head")


def test_a_grant_tells_its_receipt():
    own = a_grant()
    assert isinstance(own, Grant)
    assert (own.entry_id, own.guarantee, own.ledger_head) == ("entry-1", GUARANTEE, "head")
    assert own.purposes == ("rows", "sums")
    assert not own.not_private


def test_secrets_are_fresh():
    secrets = {a_grant().secret.reveal() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(secret) for secret in secrets} == {32}
    assert a_grant().key("rows").words("samples", 1) != a_grant().key("rows").words("samples", 1)


def test_a_grant_takes_no_secret_from_anybody():
    with pytest.raises(TypeError, match="secret"):
        Grant("entry-1", GUARANTEE, ("rows",), "head", secret=grants.Secret(bytes(32)))
    with pytest.raises(FrozenInstanceError):
        a_grant().secret = grants.Secret(bytes(32))


def test_a_step_is_what_it_draws():
    drawn = []
    assert a_grant().step("asked", lambda: drawn.append(1) or "labels", whole=True) == "labels"
    assert drawn == [1]


def test_keys_repeat_within_a_grant():
    own = a_grant()
    assert (
        own.key("rows", 5).words("samples", 3).tolist()
        == own.key("rows", 5).words("samples", 3).tolist()
    )
    own.key("rows", 5).claim(b"one")
    with pytest.raises(NoiseKeyReused):
        own.key("rows", 5).claim(b"two")


def test_undeclared_purposes_and_bad_blocks_are_refused():
    with pytest.raises(
        InvalidInput, match="purpose='matrix': not declared; the plan declares rows, sums"
    ):
        a_grant().key("matrix")
    for block in (-1, 2**64):
        with pytest.raises(InvalidInput, match=f"block={block}: must be a block number"):
            a_grant().key("rows", block)
    for purposes in ((), ("rows", "rows"), ("rows", "")):
        with pytest.raises(InvalidInput, match="must be distinct, non-empty names"):
            open_grant("entry-1", GUARANTEE, purposes, "head")


def test_the_secret_stays_in_the_grant():
    own = a_grant()
    hidden = own.secret.reveal()
    assert hidden.hex() not in repr(own)
    assert "secret" not in repr(own)
    with pytest.raises(TypeError):
        vars(own)
    steals = (copy.copy, copy.deepcopy, pickle.dumps, dataclasses.asdict, dataclasses.astuple)
    for steal in steals:
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            steal(own)
    with pytest.raises(dataclasses.FrozenInstanceError):
        own.purposes = ("rows", "more")


def test_a_forked_child_is_refused(monkeypatch):
    done = subprocess.run([sys.executable, "-c", FORKED], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own, pid = a_grant(), grants.os.getpid()
    monkeypatch.setattr(grants.os, "getpid", lambda: pid + 1)
    with pytest.raises(NoiseKeyReused, match="draw noise in the process that opened it"):
        own.key("rows")
