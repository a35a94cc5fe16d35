"""NOT FOR RELEASE: SDMetrics' quality report beside our figures, where it is installed.

A judge that others wrote: 1 is perfect. It takes tables of pandas, so real rows go through it as such.
"""

import importlib.metadata

import pyarrow as pa

from adumbra.numerics import Array
from adumbra.postprocess.decode import column_array
from adumbra.schema.schema import Kind, Schema

JUDGED_ROWS = 20_000
SDTYPES = {Kind.NUMBER: "numerical", Kind.INTEGER: "numerical", Kind.BOOLEAN: "boolean"}
SDTYPES |= {Kind.DATE: "datetime", Kind.DATETIME: "datetime"}


def sdmetrics_quality(schema: Schema, real: Array, released: list[Array]) -> dict[str, object]:
    """The overall score and its properties for each release, or why there are none."""
    try:
        version = importlib.metadata.version("sdmetrics")
        from sdmetrics.reports.single_table import QualityReport  # noqa: PLC0415
    except (ImportError, importlib.metadata.PackageNotFoundError):
        return {
            "version": None,
            "scores": [],
            "why": "SDMetrics is not installed; pip install sdmetrics",
        }
    metadata = {
        "columns": {c.name: {"sdtype": SDTYPES.get(c.kind, "categorical")} for c in schema.columns}
    }
    frame = _frame(schema, real)
    scores: list[dict[str, object]] = []
    for values in released:
        report = QualityReport()
        try:
            report.generate(frame, _frame(schema, values), metadata, verbose=False)
            parts = {
                str(p["Property"]): float(p["Score"]) for _, p in report.get_properties().iterrows()
            }
            scores.append({"Overall": float(report.get_score()), **parts})
        except Exception as error:  # noqa: BLE001 - a crash of theirs is a result; its text may hold data
            scores.append({"error": f"SDMetrics stopped with {type(error).__name__}"})
    return {"version": version, "scores": scores, "why": ""}


def _frame(schema: Schema, values: Array) -> object:
    rows = values[:JUDGED_ROWS]
    table = pa.table({c.name: column_array(c, rows[:, at]) for at, c in enumerate(schema.columns)})
    return table.to_pandas()
