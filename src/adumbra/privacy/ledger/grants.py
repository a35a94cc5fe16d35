"""What makes rights binding on PostgreSQL: a role per right, column grants, row security, triggers.

Signatures show an act that nobody had the right to. Grants prevent it: whoever may only release cannot
write a cap, take a charge back or read the ledger's key, whatever program they use. The owner of the
tables runs this text once, as a user who may create roles, and gives each operator's login the roles of
its rights. On SQLite there is nothing of the kind: whoever can write the file can write all of it.
"""

import re

from sqlalchemy import Connection
from sqlalchemy import text as sql

from adumbra.attestation.events import RIGHTS
from adumbra.errors import require
from adumbra.privacy.ledger.guards import BOUND

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
TABLES = ("keys", "events", "heads", "populations", "entries", "charges")


def grants_sql(connection: Connection, prefix: str = "adumbra") -> str:
    """The statements for this ledger; `prefix` starts the names of the five roles."""
    require(
        connection.dialect.name == "postgresql",
        "ledger: is a SQLite file; whoever can write it can write all of it, nothing can be granted",
    )
    require(
        _NAME.fullmatch(prefix) is not None,
        f"prefix={prefix}: must be of a-z, 0-9 and _, and start with a letter",
    )
    schema = str(connection.execute(sql("SELECT quote_ident(current_schema())")).scalar())
    role = {right: f"{prefix}_{right}" for right in RIGHTS}
    everyone = ", ".join(role.values())
    writers = ", ".join(role[right] for right in RIGHTS if right != "read")
    tables = {name: f"{schema}.adumbra_{name}" for name in TABLES}
    public = "name IN ('format', 'ledger', 'public_key') OR name LIKE 'roll:%'"
    own = "USING (name = 'fingerprint_key')"
    populations, entries = tables["populations"], tables["entries"]
    lines = [
        "BEGIN",
        *(f"CREATE ROLE {name} NOLOGIN" for name in role.values()),
        f"GRANT USAGE ON SCHEMA {schema} TO {everyone}",
        *(f"REVOKE ALL ON {name} FROM PUBLIC" for name in tables.values()),
        *(f"GRANT SELECT ON {name} TO {everyone}" for name in tables.values()),
        # The ledger's key is its owner's alone, the key of fingerprints is for whoever reads rows.
        f"ALTER TABLE {tables['keys']} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY adumbra_public_keys ON {tables['keys']} FOR SELECT USING ({public})",
        f"CREATE POLICY adumbra_own_key ON {tables['keys']} FOR SELECT TO {role['release']} {own}",
        f"GRANT INSERT ON {tables['events']} TO {writers}",
        f"GRANT UPDATE (sequence, hash, signature) ON {tables['heads']} TO {writers}",
        f"GRANT INSERT, UPDATE (parent, spent) ON {populations} TO {role['register']}",
        f"GRANT INSERT ON {tables['charges']} TO {role['register']}, {role['release']}",
        f"GRANT UPDATE (cap, epsilon, delta, currency) ON {populations} TO {role['raise']}",
        f"GRANT UPDATE (spent) ON {populations} TO {role['release']}, {role['void']}",
        f"GRANT INSERT, UPDATE (state, digest, staged, target) ON {entries} TO {role['release']}",
        f"GRANT UPDATE (state) ON {entries} TO {role['void']}",
        # A charge is taken back by whoever may void; the trigger asks who may call this function.
        f"CREATE FUNCTION {schema}.adumbra_may_void() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        f"REVOKE ALL ON FUNCTION {schema}.adumbra_may_void() FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION {schema}.adumbra_may_void() TO {role['void']}",
        *(text.format(schema=f"{schema}.") for text in BOUND.values()),
        "COMMIT",
    ]
    return ";\n".join(lines) + ";\n"
