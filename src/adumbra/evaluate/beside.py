"""NOT FOR RELEASE: SDMetrics' quality report beside our figures, where it is installed.

A judge that others wrote: 1 is perfect. It takes tables of pandas, so real rows go through it as such.
Its time grows with the square of the columns, so it sees a public part of a wide table.
"""

import importlib.metadata
import warnings

import pyarrow as pa

from adumbra.numerics import Array
from adumbra.postprocess.decode import column_array
from adumbra.schema.schema import Kind, Schema

JUDGED_ROWS = 10_000
JUDGED_COLUMNS = 30
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
            "note": "",
            "why": "SDMetrics is not installed; pip install sdmetrics",
        }
    places = judged_columns(schema.width)
    columns = [schema.columns[at] for at in places]
    metadata = {"columns": {c.name: {"sdtype": SDTYPES.get(c.kind, "categorical")} for c in columns}}
    frame = _frame(schema, places, real)
    scores: list[dict[str, object]] = []
    for values in released:
        report = QualityReport()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # whether it warns, and of what, depends on private rows
                report.generate(frame, _frame(schema, places, values), metadata, verbose=False)
            parts = {
                str(p["Property"]): float(p["Score"]) for _, p in report.get_properties().iterrows()
            }
            scores.append({"Overall": float(report.get_score()), **parts})
        except Exception as error:  # noqa: BLE001 - a crash of theirs is a result; its text may hold data
            scores.append({"error": f"SDMetrics stopped with {type(error).__name__}"})
    note = ""
    if len(places) < schema.width:
        note = f"SDMetrics judged {len(places)} of {schema.width} columns, evenly spaced"
    return {"version": version, "scores": scores, "note": note, "why": ""}


def judged_columns(width: int) -> list[int]:
    """Every column of a narrow table, else evenly spaced ones."""
    count = min(width, JUDGED_COLUMNS)
    return [place * width // count for place in range(count)]


def _frame(schema: Schema, places: list[int], values: Array) -> object:
    rows = values[:JUDGED_ROWS]
    table = pa.table(
        {schema.columns[at].name: column_array(schema.columns[at], rows[:, at]) for at in places}
    )
    return table.to_pandas()
