"""SDMetrics' quality and diagnostic reports of synthetic tables, run where SDMetrics is installed.

    python sdmetrics_report.py REAL.parquet METADATA.json SYNTHETIC.parquet...

One JSON line per synthetic table: the two scores and their properties, or the error that stopped them.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import pandas as pd


def reports(real, synthetic, metadata):
    from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

    found = {}
    for name, report in (("quality", QualityReport()), ("diagnostic", DiagnosticReport())):
        with contextlib.redirect_stdout(io.StringIO()):
            report.generate(real, synthetic, metadata, verbose=False)
        found[name] = float(report.get_score())
        for _, part in report.get_properties().iterrows():
            found[f"{name}: {part['Property']}"] = float(part["Score"])
    return found


def main(real_path, metadata_path, *paths):
    metadata = json.loads(Path(metadata_path).read_text(encoding="utf-8"))
    real = pd.read_parquet(real_path)
    for path in paths:
        try:
            synthetic = pd.read_parquet(path)[list(real.columns)]
            for name in real.columns:
                numeric = metadata["columns"][name]["sdtype"] == "numerical"
                synthetic[name] = (
                    pd.to_numeric(synthetic[name]) if numeric else synthetic[name].astype(str)
                )
            line = reports(real, synthetic, metadata)
        except Exception as error:  # noqa: BLE001 - a crash of the judge is a result
            line = {"error": f"{type(error).__name__}: {error}"[:240]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
