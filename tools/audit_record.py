"""Attack every claim of the package as it stands, and record the result for the cards of this version.

python tools/audit_record.py                 all methods, 100,000 runs on each table
python tools/audit_record.py --check         say whether the record is of this package
"""

import argparse
import json
import sys

from adumbra.audit.attack import attack
from adumbra.audit.cases import all_cases
from adumbra.release.provenance import audit_of
from adumbra.version import AUDIT, PACKAGE, package_digest


def main() -> None:
    """Attack and write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    digest = package_digest(PACKAGE)
    if asked.check:
        found = audit_of(digest, AUDIT)
        print(found or "no audit of this package is recorded")
        sys.exit(found is None)
    attacks = [attack(case, asked.runs) for case in all_cases(1.0)]
    refuted = [one.case for one in attacks if one.violated]
    record = {"sha256": digest, "claims": len(attacks), "refuted": len(refuted), "runs": asked.runs}
    AUDIT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(record, *refuted)


if __name__ == "__main__":
    main()
