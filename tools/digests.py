"""Compare what every kind of release draws under a known secret with the digests that are kept.

Check:     python tools/digests.py
Rewrite:   python tools/digests.py --write     (after a change of released values that is meant)

The digests are in tests/e2e/digests.json; tests/support/digests.py says how they are made.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))


def main() -> int:
    """Compare, or write."""
    from support import digests  # noqa: PLC0415 - the path is set above

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite tests/e2e/digests.json")
    if parser.parse_args().write:
        digests.write()
        return 0
    faults, compared = digests.differences(digests.digests_under(digests.PINNED))
    print(*faults, f"{compared} parts compared, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
