"""The account rebuilt from the log alone: what the tables must say if nobody touched them.

Written apart from `accounts` and `protocol` (it shares only the prices), so that a defect there shows as
a difference here.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from adumbra.attestation.events import OWNER_KINDS, canonical
from adumbra.errors import require
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.privacy.ledger.accounts import cap, cost
from adumbra.privacy.ledger.values import Population
from adumbra.relations import Unit, relation_of

Event = Mapping[str, Any]

_STEPS = {
    "draw": ("reserved", "drawn"),
    "seal": ("drawn", "sealed"),
    "publish": ("sealed", "publishing"),
    "commit": ("publishing", "published"),
    "void": ("reserved", "void"),
}


class Book:
    """Three tables as dictionaries, grown event by event; an illegal event raises."""

    def __init__(self) -> None:
        self.populations: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.charges: dict[tuple[str, str], int] = {}
        self._given_up: Counter[str] = Counter()
        self._noticed: set[str] = set()  # entries that were withdrawn or superseded

    def apply(self, event: Event, private: Event) -> None:
        """One public event with its private companion."""
        kind = event["kind"]
        if kind == "register":
            self._register(event, private)
        elif kind == "reserve":
            self._reserve(event, private)
        elif kind in _STEPS:
            self._step(event, private)
        elif kind == "raise-cap":
            row = self.populations[event["population"]]
            require(event["cap"] > row["cap"] and event["before"] == row["epsilon"], "not a raise")
            self._given_up[event["population"]] += row["spent"] == row["cap"]
            row |= {"cap": event["cap"], "epsilon": event["epsilon"]}
            self._check_cap(event["population"])
        elif kind == "change-delta":
            self._change_delta(event)
        elif kind == "link":
            self._link(event)
        elif kind in ("withdraw", "supersede"):
            self._notice(event)
        elif kind == "evaluate":
            self._require_published(event["entry"], event["digest"])
        else:
            statements = ("init", "declare-different", "withdraw-different", *OWNER_KINDS)
            require(kind in statements, f"unknown kind {kind}")

    def _register(self, event: Event, private: Event) -> None:
        name = event["population"]
        require(name not in self.populations, "registered twice")
        row = {
            key: event[key]
            for key in ("unit", "neighbours", "currency", "epsilon", "delta", "cap", "parent")
        }
        self.populations[name] = row | {
            "name": name,
            "spent": 0,
            "owner": private["owner"],
            "purpose": event["purpose"],
        }
        self._check_cap(name)

    def _change_delta(self, event: Event) -> None:
        name = event["population"]
        row = self.populations[name]
        require(all(charged != name for _, charged in self.charges), "changed after a charge")
        require(
            (event["before"], event["before_delta"]) == (row["epsilon"], row["delta"]), "not its own"
        )
        row |= {key: event[key] for key in ("epsilon", "delta", "currency", "cap")}
        self._check_cap(name)

    def _check_cap(self, name: str) -> None:
        row, people = self.populations[name], self._population(name)
        expected = cap(people, self._given_up[name])
        require(row["currency"] == people.currency and row["cap"] == expected, "wrong cap")

    def _population(self, name: str) -> Population:
        row = self.populations[name]
        return Population(
            name=name,
            unit=Unit(row["unit"]),
            neighbours=relation_of(row["neighbours"]),
            epsilon=float(row["epsilon"]),
            delta=float(row["delta"]),
        )

    def _above(self, name: str) -> list[str]:
        found = []
        while name:
            require(name not in found, "a circle of parents")
            found.append(name)
            name = self.populations[name]["parent"]
        return found

    def _reserve(self, event: Event, private: Event) -> None:
        entry, population = event["entry"], event["population"]
        require(entry not in self.entries, "reserved twice")
        require(entry.endswith(f"-{event['sequence']:06d}"), "not the id of this event")
        guarantee = PrivacyGuarantee.from_dict(event["guarantee"])
        names = self._above(population)
        people = self.populations[population]
        require(
            (str(guarantee.unit), str(guarantee.neighbours)) == (people["unit"], people["neighbours"]),
            "unlike guarantee",
        )
        require(sorted(event["charges"]) == sorted(names), "not every ancestor was charged")
        for name, units in event["charges"].items():
            self._charge(entry, guarantee, name, units)
        self.entries[entry] = {
            "id": entry,
            "sequence": event["sequence"],
            "population": population,
            "state": "reserved",
            "guarantee": canonical(event["guarantee"]).decode(),
            "source_pin": private["source_pin"],
            "digest": "",
            "staged": "",
            "target": "",
        }

    def _charge(self, entry: str, guarantee: PrivacyGuarantee, name: str, units: int) -> None:
        row = self.populations[name]
        require(units == cost(guarantee, self._population(name)), "a wrong price")
        row["spent"] += units
        require(row["spent"] <= row["cap"], f"population {name} above its cap")
        require((entry, name) not in self.charges, "charged twice")
        self.charges[entry, name] = units

    def _step(self, event: Event, private: Event) -> None:
        row = self.entries[event["entry"]]
        before, after = _STEPS[event["kind"]]
        require(row["state"] == before, f"{event['kind']} of an entry that is {row['state']}")
        row["state"] = after
        if event["kind"] == "seal":
            row |= {"digest": event["digest"], "staged": private["staged"]}
        elif event["kind"] == "publish":
            row["target"] = private["target"]
        elif event["kind"] == "commit":
            require(event["digest"] == row["digest"], "committed with another digest")
        elif event["kind"] == "void":
            for (entry, name), units in self.charges.items():
                if entry == row["id"]:
                    self.populations[name]["spent"] -= units

    def _notice(self, event: Event) -> None:
        entry = event["entry"]
        named = {entry: event["digest"]}
        if event["kind"] == "supersede":
            require(event["by"] != entry, "superseded by itself")
            named[event["by"]] = event["by_digest"]
        for name, digest in named.items():
            self._require_published(name, digest)
        require(entry not in self._noticed, "two notices on one release")
        self._noticed.add(entry)

    def _require_published(self, entry: str, digest: str) -> None:
        row = self.entries[entry]
        require((row["state"], row["digest"]) == ("published", digest), "not a published release")

    def _link(self, event: Event) -> None:
        name, parent = event["population"], event["parent"]
        require(self.populations[name]["parent"] == "", "linked twice")
        live = [
            entry
            for entry, child in self.charges
            if child == name and self.entries[entry]["state"] != "void"
        ]
        wanted = {(entry, above) for entry in live for above in self._above(parent)}
        added = {(charge["entry"], charge["population"]) for charge in event["charges"]}
        require(
            wanted == added and len(added) == len(event["charges"]), "not every spend was charged above"
        )
        for charge in event["charges"]:
            guarantee = PrivacyGuarantee.from_dict(
                json.loads(self.entries[charge["entry"]]["guarantee"])
            )
            self._charge(charge["entry"], guarantee, charge["population"], charge["units"])
        self.populations[name]["parent"] = parent
        self._above(name)
