"""Plan and release: the one place where mechanisms, ledger, storage and report meet.

    plan -> reserve (durable) -> draw -> seal -> publish -> commit

Before `reserve` only names, storage types and public counts are read. A crash after it is charged; what
was sealed can be published later (`ledger resume`), and nothing is drawn twice under one id.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from adumbra.data.schema import Schema
from adumbra.data.sources import Source, open_source
from adumbra.data.watched import WatchedSource
from adumbra.engine.base import Engine
from adumbra.engine.local import LocalEngine
from adumbra.errors import InvalidInput, LedgerError, require
from adumbra.mechanisms import dppro, jl_laplace, lda, moments, pca, ron_gauss, topk
from adumbra.mechanisms.base import Draft, Plan
from adumbra.mechanisms.dppro import DPProConfig
from adumbra.mechanisms.jl_laplace import JLLaplaceConfig
from adumbra.mechanisms.lda import LDAConfig
from adumbra.mechanisms.moments_plan import MomentsConfig
from adumbra.mechanisms.pca import PCAConfig
from adumbra.mechanisms.ron_gauss import RONGaussConfig
from adumbra.mechanisms.topk import TopKConfig
from adumbra.privacy.grant import Grant
from adumbra.privacy.ledger import Ledger, open_ledger
from adumbra.release.artifact import Release
from adumbra.release.card import build_card, require_words
from adumbra.release.storage import load, write_staged
from adumbra.report.page import render
from adumbra.version import __version__

Config = (
    DPProConfig | JLLaplaceConfig | LDAConfig | MomentsConfig | PCAConfig | RONGaussConfig | TopKConfig
)

LIMITS = (
    "The guarantee covers this folder; whatever else is published about the same people adds to it.",
    "It hides one unit's contribution, not what is true of the population as a whole.",
    "Bounds, categories, labels were declared, not measured; a wrong one costs accuracy, not privacy.",
    "Run time, memory and the machine itself are outside the guarantee.",
)


def plan(config: Config, schema: Schema) -> Plan:  # noqa: PLR0911 - one case a mechanism
    """Cost, noise and expected error of a release; touches no data."""
    match config:
        case DPProConfig():
            return dppro.plan(config, schema)
        case JLLaplaceConfig():
            return jl_laplace.plan(config, schema)
        case LDAConfig():
            return lda.plan(config, schema)
        case MomentsConfig():
            return moments.plan(config, schema)
        case PCAConfig():
            return pca.plan(config, schema)
        case RONGaussConfig():
            return ron_gauss.plan(config, schema)
        case TopKConfig():
            return topk.plan(config, schema)
    raise _unknown(config)


def draw(  # noqa: PLR0911 - as above
    source: Source, config: Config, *, engine: Engine, grant: Grant
) -> Draft:
    """Run a mechanism under a grant that was paid for."""
    match config:
        case DPProConfig():
            return dppro.release(source, config, engine=engine, grant=grant)
        case JLLaplaceConfig():
            return jl_laplace.release(source, config, engine=engine, grant=grant)
        case LDAConfig():
            return lda.release(source, config, engine=engine, grant=grant)
        case MomentsConfig():
            return moments.release(source, config, engine=engine, grant=grant)
        case PCAConfig():
            return pca.release(source, config, engine=engine, grant=grant)
        case RONGaussConfig():
            return ron_gauss.release(source, config, engine=engine, grant=grant)
        case TopKConfig():
            return topk.release(source, config, engine=engine, grant=grant)
    raise _unknown(config)


def require_payable(
    planned: Plan, *, ledger: str | Path | Ledger, population: str, out: str | Path
) -> None:
    """Refuse at once what `release` would refuse before its charge; charges nothing."""
    _require_place(Path(out))
    with _opened(ledger) as book:
        book.check(population, planned.guarantee)


def release(  # noqa: PLR0913 - the door to everything: each keyword is one public decision
    data: object,
    config: Config,
    *,
    schema: Schema,
    ledger: str | Path | Ledger,
    population: str,
    out: str | Path,
    engine: Engine | None = None,
    about: Mapping[str, object] | None = None,
    before_dp: str = "not declared",
) -> Release:
    """Pay, draw, seal and publish one release into the new folder `out`."""
    target = Path(out)
    _require_place(target)
    people = {"population": population, **(about or {})}
    require_words(people, before_dp)
    source = WatchedSource(open_source(data, schema))
    planned = plan(config, source.schema)
    pin = source.pin()
    request = {"config": config_facts(config), "schema": source.schema.digest()}
    with _opened(ledger) as book:
        entry = book.reserve(population, planned.guarantee, request=request, source_pin=pin)
        grant = book.draw(entry, planned.purposes)
        fingerprint = book.fingerprint(source.watched_columns)
        source.see = fingerprint.update
        draft = draw(source, config, engine=engine or LocalEngine(), grant=grant)
        card = build_card(
            method=planned.method,
            config=config_facts(config),
            guarantee=planned.guarantee,
            schema_dict=source.schema.facts(),
            declared_by=source.schema.declared_by,
            mechanisms=[noise.to_dict() for noise in draft.noise or planned.noise],
            expected_error=dict(planned.expected),
            ledger={"entry": entry, **book.head().to_dict()},
            about=people,
            limits=[*planned.notes, *LIMITS],
            facts=dict(draft.facts),
            adumbra_version=__version__,
            before_dp=before_dp,
        )
        staged = target.parent / f".{target.name}.{entry}.staged"
        digest = write_staged(staged, tables=draft.tables, arrays=draft.arrays, card=card, page=render)
        if source.pin() != pin:
            raise LedgerError(f"entry={entry}: the data changed while it was read; nothing is published")
        if source.is_seen:
            book.record_fingerprint(entry, fingerprint)
        book.seal(entry, staged=staged, digest=digest)
        book.publish(entry, target)
        book.commit(entry)
    target.chmod(0o755)  # staged and published as the owner's own; readable once it is committed
    return load(target)


def config_facts(config: Config) -> dict[str, object]:
    """Every public parameter by name, for the card and the ledger."""
    facts = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}


def _require_place(target: Path) -> None:
    """A release needs a new folder that can be made: to fail at that later would waste the charge."""
    require(not os.path.lexists(target), f"out={target}: exists already; choose a new folder")
    above = next(folder for folder in target.absolute().parents if os.path.lexists(folder))
    require(
        above.is_dir() and os.access(above, os.W_OK | os.X_OK),
        f"out={target}: {above} is no folder that can be written to; choose another place",
    )


@contextmanager
def _opened(ledger: str | Path | Ledger) -> Iterator[Ledger]:
    """The ledger itself, or the one at a location, closed afterwards."""
    if isinstance(ledger, Ledger):
        yield ledger
        return
    book = open_ledger(ledger)
    try:
        yield book
    finally:
        book.close()


def _unknown(config: object) -> InvalidInput:
    return InvalidInput(
        f"config of type {type(config).__name__}: no such mechanism; give one of its configs"
    )
