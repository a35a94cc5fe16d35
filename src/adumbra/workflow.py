"""Plan and release: the one place where mechanisms, ledger, storage and report meet.

    plan -> reserve (durable) -> draw -> seal -> publish -> commit

Before `reserve` only names, storage types and public counts are read. A crash after it is charged; what
was sealed can be published later (`ledger resume`), and nothing is drawn twice under one id.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from adumbra.data.schema import Schema
from adumbra.data.sources import Source, open_source
from adumbra.data.watched import WatchedSource
from adumbra.engine.base import Engine
from adumbra.engine.local import LocalEngine
from adumbra.errors import ChargeNote, InvalidInput, LedgerError, require
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
from adumbra.release.card import Card, build_card, require_about, stamped
from adumbra.release.place import LONGEST_ENTRY, require_place, staged_at
from adumbra.release.storage import date_files, load, require_card, write_staged
from adumbra.report.page import render
from adumbra.version import __version__

Config = (
    DPProConfig | JLLaplaceConfig | LDAConfig | MomentsConfig | PCAConfig | RONGaussConfig | TopKConfig
)

# How a paid entry becomes a grant: from the ledger, the entry and the purposes of its plan. `release`
# has `Ledger.draw` and takes no other; the auditor calls `_transact` with its own.
OpenGrant = Callable[[Ledger, str, tuple[str, ...]], Grant]

LIMITS = (
    "The guarantee covers this folder; whatever else is published about the same people adds to it.",
    "It hides one unit's contribution, not what is true of the population as a whole.",
    (
        "Bounds, categories and labels were declared. A wrong one costs accuracy; one that was read off "
        "the private rows costs privacy, and the guarantee does not cover it."
    ),
    "Run time, memory and the machine itself are outside the guarantee.",
)


def plan(config: Config, schema: Schema | str | Path) -> Plan:  # noqa: PLR0911 - one case a mechanism
    """Cost, noise and expected error of a release; touches no data and costs nothing.

    Parameters
    ----------
    config : the config of a method, such as `MomentsConfig(epsilon=1.0)`
    schema : the declared columns, unit and relation: a `Schema`, or the path of a schema file

    Returns
    -------
    Plan with `guarantee`, `noise`, `expected` (errors by name), `notes` (sentences) and `details`.

    Raises
    ------
    InvalidInput, if config and schema do not fit; its subclass `Unsupported`, if there is no proof.
    """
    schema = as_schema(schema)
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


def require_payable(  # noqa: PLR0913 - the public decisions of `release`
    config: Config,
    planned: Plan,
    *,
    schema: Schema,
    ledger: str | Path | Ledger,
    population: str,
    out: str | Path,
    engine: Engine | None = None,
    about: Mapping[str, object] | None = None,
    before_dp: str = "not declared",
) -> None:
    """Refuse at once what `release` would refuse before its charge; charges nothing."""
    require_place(Path(out))
    verbs = (getattr(engine or LocalEngine, verb, None) for verb in ("fold", "map_blocks"))
    require(all(map(callable, verbs)), f"engine of type {type(engine).__name__}: use LocalEngine()")
    with _opened(ledger) as book:
        book.check(population, planned.guarantee)
        paid = {"entry": LONGEST_ENTRY, **book.head().to_dict()}
    require_about(about or {})
    people = {"population": population, **(about or {})}
    require_card(_card(config, planned, schema, about=people, before_dp=before_dp, paid=paid))


def release(  # noqa: PLR0913 - the door to everything: each keyword is one public decision
    data: object,
    config: Config,
    *,
    schema: Schema | str | Path,
    ledger: str | Path | Ledger,
    population: str,
    out: str | Path,
    engine: Engine | None = None,
    about: Mapping[str, object] | None = None,
    before_dp: str = "not declared",
) -> Release:
    """Pay for one release, draw it, and publish it in the new folder `out`.

    Parameters
    ----------
    data : what to release: the path of a Parquet, CSV or TSV file, a folder or glob of them, or a FIMI
        `.dat` file; a table of pandas, polars or pyarrow; a numpy array or a scipy.sparse matrix
    config : the config of a method, such as `MomentsConfig(epsilon=1.0)`
    schema : the declared columns, unit and relation: a `Schema`, or the path of a schema file
    ledger : the ledger that pays: an open `Ledger`, a path, or a postgresql:// address
    population : the registered population whose people these rows are
    out : a folder that does not exist yet
    engine : where it runs; `LocalEngine()` unless given
    about : words for the card: title, curator, intended_use, ...; they are public
    before_dp : what was done to the rows, or learned from them, before; it goes on the card

    Returns
    -------
    Release, as `load(out)` gives it.

    Raises
    ------
    InvalidInput or BudgetRefused, before anything is charged. What stops it after the charge carries a
    note on which ledger entry stays charged, and what can be done.
    """
    _transact(
        data,
        config,
        schema=schema,
        ledger=ledger,
        population=population,
        out=Path(out),
        engine=engine,
        about=about,
        before_dp=before_dp,
        open_grant=Ledger.draw,
    )
    published = load(out)
    date_files(Path(out))  # reading it set the times of access
    return published


def _transact(  # noqa: PLR0913 - as `release`
    data: object,
    config: Config,
    *,
    schema: Schema | str | Path,
    ledger: str | Path | Ledger,
    population: str,
    out: Path,
    engine: Engine | None,
    about: Mapping[str, object] | None,
    before_dp: str,
    open_grant: OpenGrant,
) -> None:
    """All of `release` but reading it back; a release under a grant with a known secret is stamped."""
    source = WatchedSource(open_source(data, as_schema(schema)))
    planned = plan(config, source.schema)
    pin = source.pin()
    with _opened(ledger) as book:
        require_payable(
            config,
            planned,
            schema=source.schema,
            ledger=book,
            population=population,
            out=out,
            engine=engine,
            about=about,
            before_dp=before_dp,
        )
        request = {
            "method": planned.method,
            "config": config_facts(config),
            "schema": source.schema.digest(),
        }
        entry = book.reserve(population, planned.guarantee, request=request, source_pin=pin)
        with _told_where_it_stands(book, entry):
            grant = open_grant(book, entry, planned.purposes)
            fingerprint = book.fingerprint(source.watched_columns)
            source.see = fingerprint.update
            draft = draw(source, config, engine=engine or LocalEngine(), grant=grant)
            paid = {"entry": entry, **book.head().to_dict()}
            people = {"population": population, **(about or {})}
            card = _card(
                config, planned, source.schema, about=people, before_dp=before_dp, paid=paid, draft=draft
            )
            if grant.not_private:
                card = stamped(card)
            staged = staged_at(out, entry)
            digest = write_staged(
                staged, tables=draft.tables, arrays=draft.arrays, card=card, page=render
            )
            if source.pin() != pin:
                raise LedgerError(
                    f"entry={entry}: the data changed while it was read; nothing is published"
                )
            if source.is_seen:
                book.record_fingerprint(entry, fingerprint)
            book.seal(entry, staged=staged, digest=digest)
            book.publish(entry, out)
            book.commit(entry)
    out.chmod(0o755)  # staged and published as the owner's own; readable once it is committed


def _card(  # noqa: PLR0913 - one keyword a part of the card
    config: Config,
    planned: Plan,
    schema: Schema,
    *,
    about: Mapping[str, object],
    before_dp: str,
    paid: Mapping[str, object],
    draft: Draft | None = None,
) -> Card:
    """The card of a draft, or of a plan while the draft is to come."""
    return build_card(
        method=planned.method,
        config=config_facts(config),
        guarantee=planned.guarantee,
        schema_dict=schema.facts(),
        declared_by=schema.declared_by,
        mechanisms=[
            noise.to_dict() for noise in (draft.noise if draft is not None else ()) or planned.noise
        ],
        expected_error=dict(planned.expected),
        ledger=paid,
        about=about,
        notes=planned.notes,
        limits=LIMITS,
        facts=dict(draft.facts) if draft is not None else {},
        adumbra_version=__version__,
        before_dp=before_dp,
    )


@contextmanager
def _told_where_it_stands(book: Ledger, entry: str) -> Iterator[None]:
    """Whatever stops a release after its charge, Ctrl-C too, carries a note on what stays charged."""
    try:
        yield
    except BaseException as error:
        error.add_note(ChargeNote(book.standing(entry)))
        raise


def config_facts(config: Config) -> dict[str, object]:
    """Every public parameter by name, for the card and the ledger."""
    facts = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}


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


def as_schema(schema: object) -> Schema:
    """A schema, or the one in the file at a path."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.read(schema)
    kind = type(schema).__name__
    raise InvalidInput(f"schema of type {kind}: give an adumbra.Schema, or the path of a schema file")


def _unknown(config: object) -> InvalidInput:
    return InvalidInput(
        f"config of type {type(config).__name__}: no such mechanism; give one of its configs"
    )
