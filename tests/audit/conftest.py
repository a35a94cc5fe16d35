"""Sums up what an audit did: claims attacked, bugs caught, pairs replayed."""

from support.evidence import figures


def pytest_terminal_summary(terminalreporter, config) -> None:
    """One line per kind of test, from what the passed ones recorded."""
    told = figures(config, terminalreporter)
    lines = []
    if claims := told["claim"]:
        gauss = [one for one in claims if one["delta"] > 0]
        lines.append(
            f"{len(claims)} claims attacked with {claims[0]['runs']} runs on each table, 0 refuted"
        )
        for epsilon in sorted({one["claimed"] for one in gauss}):
            shares = [
                (one["proven"] / epsilon, one["name"]) for one in gauss if one["claimed"] == epsilon
            ]
            share, name = min(shares)
            lines.append(
                f"the {len(shares)} Gaussian ones of epsilon {epsilon:g}: at least {share:.3f} of it is "
                f"proven at 1 - 1e-9 (least: {name})"
            )
    if bugs := told["bug"]:
        lines.append(f"{len(bugs)} planted bugs, each caught by the check that is there for it")
    if audits := told["audits"]:
        lines.append(f"{sum(audits)} audits of one sound claim each: 0 false alarms")
    for name, taken, listed, refusals, _ in told["branches"]:
        lines.append(
            f"branches of {name}: {taken} taken by recorded releases, {listed} listed with a reason, "
            f"{refusals} only refuse"
        )
    if pairs := told["pairs"]:
        count, hostile = (sum(column) for column in zip(*pairs, strict=True))
        lines.append(
            f"{len(pairs)} kinds of release, {count} pairs replayed, {hostile} hostile: 0 differ"
        )
    if lines:
        terminalreporter.section("audit", sep="=")
        for line in lines:
            terminalreporter.line(line)
