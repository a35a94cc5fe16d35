"""Size and time of a wide table's card: `python benchmarks/card_page.py [--columns 300]`.

Renders the page of a moments release, then loads it in headless Chromium where that is installed.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import adumbra as ad
from adumbra.mechanisms.pictured import pictures_of_release
from adumbra.privacy.ledger import Population, memory_ledger
from adumbra.report.page import render
from support.browser import Browser

GOAL_BYTES, GOAL_SECONDS, REPEAT = 1_000_000, 2.0, 3


def wide_release(columns, folder):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((2_000, 5)) @ rng.standard_normal((5, columns))
    rows = np.clip(shared + rng.standard_normal((2_000, columns)), -8, 8)
    names = [f"measurement_{at:03d}" for at in range(columns)]
    schema = ad.Schema.numeric(columns, -8.0, 8.0, names=names)
    ledger = memory_ledger()
    ledger.register(Population("people", schema.unit, schema.neighbours, 9.0, 1e-6))
    table = pa.table(dict(zip(names, rows.T, strict=True)))
    config = ad.MomentsConfig(epsilon=2.0, delta=1e-6)
    return ad.release(table, config, schema=schema, ledger=ledger, population="people", out=folder / "r")


def best_seconds(run):
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=300)
    columns = parser.parse_args().columns
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        made = wide_release(columns, folder)
        page = folder / "r" / "card.html"
        drawn = best_seconds(lambda: render(made.card, pictures_of_release(made)))
        with Browser(folder / "profile") as browser:
            browser.view(1280)
            shown = best_seconds(lambda: (browser.open(page.as_uri()), browser.view(1280)))
        size = page.stat().st_size
    print(
        f"{columns} columns: {size:,} bytes (goal {GOAL_BYTES:,}), pictures and page {drawn:.2f} s, "
        f"loaded and laid out in Chromium {shown:.2f} s (goal {GOAL_SECONDS:.0f} for both)"
    )
    sys.exit(size >= GOAL_BYTES or drawn + shown >= GOAL_SECONDS)


if __name__ == "__main__":
    main()
