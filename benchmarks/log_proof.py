"""A log of a million events: the size of proof.json, and the time to check it.

python benchmarks/log_proof.py [--events 1000000]
"""

import argparse
import json
import statistics
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adumbra.attestation.loghead import LogHead, Proof, Tree


def body(number):
    event = {
        "day": "2026-11-16",
        "digest": f"{number:064x}",
        "entry": f"0123abcd-{number:06d}",
        "kind": "seal",
        "log": "public",
        "sequence": number + 1,
    }
    return json.dumps(event, sort_keys=True, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    count = parser.parse_args().events
    before = time.perf_counter()
    tree = Tree(body(number).encode() for number in range(count))
    built = time.perf_counter() - before
    head = LogHead.sign(Ed25519PrivateKey.generate(), "ab" * 16, tree, count)
    sizes, times = [], []
    for index in range(0, count, max(1, count // 200)):
        raw = Proof.make(tree, body(index), index, head).to_bytes()
        sizes.append(len(raw))
        before = time.perf_counter()
        Proof.parse(raw)
        times.append(1000 * (time.perf_counter() - before))
    middle, worst = statistics.median(times), max(times)
    print(f"{count} events: tree built in {built:.1f} s; proof.json at most {max(sizes)} bytes")
    print(f"checked in {middle:.2f} ms (median), {worst:.2f} ms (worst) of {len(times)}")


if __name__ == "__main__":
    main()
