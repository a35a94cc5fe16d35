"""The part of docs/benchmarks/peers.md on noise, selection, import time and size."""

from comparison import facts


def parts(lines: list[facts.Line]) -> list[str]:
    """Tables of the newest throughput lines; nothing where none was measured."""
    newest: dict[tuple, facts.Line] = {
        (line["what"], line["library"]): line for line in lines if line["kind"] == "throughput"
    }
    if not newest:
        return []
    rows = ["| what | library | version | each | note |", "| --- | --- | --- | --- | --- |"]
    for (what, library), line in newest.items():
        each = line["message"] if line["value"] is None else f"{line['value']:.4g} {line['unit']}"
        rows.append(f"| {what} | {library} | {line['version']} | {each} | {line['note']} |")
    last = list(newest.values())[-1]
    made = f"Measured {last['date']} at commit `{last['commit']}` by `benchmarks/throughput.py`."
    return ["## Noise, selection, start-up\n\n" + made + "\n\n" + "\n".join(rows)]
