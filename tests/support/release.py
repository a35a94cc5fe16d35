"""Small true releases to attack, and the tools to attack them."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adumbra.attestation.events import head_message
from adumbra.privacy.guarantee import PrivacyGuarantee, promise, pure
from adumbra.relations import Neighbours, Unit
from adumbra.release.card import build_card, canonical, seal_card
from adumbra.release.storage import write_staged
from adumbra.report.page import render

FULL = os.environ.get("ADUMBRA_FULL") == "1"
PAIRS = {
    "row": (Unit.ROW, Neighbours.REPLACE_ONE),
    "presence": (Unit.ROW, Neighbours.ADD_REMOVE),
    "element": (Unit.ELEMENT, Neighbours.ONE_ELEMENT),
}


def example_guarantee(kind="row", epsilon=1.0, delta=1e-6) -> PrivacyGuarantee:
    return promise(epsilon, delta, *PAIRS[kind]) if delta else pure(epsilon, *PAIRS[kind])


def signed_head():
    key = Ed25519PrivateKey.from_private_bytes(b"7" * 32)
    head = {
        "ledger": "county",
        "sequence": 17,
        "hash": "ab" * 32,
        "public_key": key.public_key().public_bytes_raw().hex(),
    }
    message = head_message(head["ledger"], "public", head["sequence"], head["hash"])
    return {**head, "signature": key.sign(message).hex()}


def example_card(guarantee=None, *, wide=10, **changes):
    guarantee = guarantee or example_guarantee()
    rows = 50000 if guarantee.neighbours.rows_are_public else None
    columns = [{"name": f"gene_{i}", "kind": "number", "lower": 0.0, "upper": 12.5} for i in range(wide)]
    columns += [{"name": "smoker", "kind": "boolean"}]
    columns += [{"name": "ward", "kind": "category", "categories": ["north", "south", "east"]}]
    fields = {
        "method": "dppro",
        "config": {"n_components": 4, "epsilon": 1.0, "delta": 1e-6, "row_norm": 2.0, "matrix_seed": 7},
        "guarantee": guarantee,
        "schema_dict": {"rows": rows, "max_rows": 1000000, "label": "ward", "columns": columns},
        "declared_by": "Registry of the county hospital, data protection office",
        "mechanisms": [
            {
                "purpose": "rows",
                "distribution": "gaussian" if guarantee.delta else "laplace",
                "scale": 17.0 if guarantee.delta else 4.0,
                "sensitivity": 4.0,
                "norm": "L2" if guarantee.delta else "L1",
                "grid": 2.0**-20,
            }
        ],
        "expected_error": {"standard deviation of one released number": 17.0, "relative error": 0.31},
        "ledger": {"entry": "e-000017", **signed_head()},
        "about": {"title": "Cohort 7, projected", "curator": "County hospital", "date": "2026-11-16"},
        "limits": ["Single rows are drowned in noise; use sums, distances and models over many rows."],
        "facts": {"matrix": "Gaussian, on the lattice 2^-20"},
        "adumbra_version": "0.1.0",
    }
    return build_card(**{**fields, **changes})


def example_tables(rows=50):
    rng = np.random.default_rng(1)
    numbers = np.rint(rng.normal(size=(rows, 2)) * 2.0**20) * 2.0**-20
    words = pa.array([["north", "south", "east"][i % 3] for i in range(rows)])
    return {
        "data": pa.table({"c1": numbers[:, 0], "c2": numbers[:, 1], "ward": words, "n": np.arange(rows)})
    }


def example_arrays():
    return {
        "matrix": np.arange(12.0).reshape(3, 4),
        "flags": np.array([True, False]),
        "counts": np.arange(3),
    }


def example_release(folder: Path, *, card=None, page=render) -> str:
    return write_staged(
        folder, tables=example_tables(), arrays=example_arrays(), card=card or example_card(), page=page
    )


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def reseal(folder: Path, change=lambda card: card) -> None:
    """What a forger does: change the release, then make every hash of the card right again."""
    card = json.loads((folder / "card.json").read_bytes())
    card = change(card)
    if isinstance(card.get("files"), dict):
        for name in card["files"]:
            content = (folder / name).read_bytes() if (folder / name).is_file() else b""
            card["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    if isinstance(card.get("proof"), dict):
        card = seal_card(card)
    (folder / "card.json").write_bytes(canonical(card))
