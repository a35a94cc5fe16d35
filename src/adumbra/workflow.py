"""Prepare and release: the one place where rows, methods, ledger, storage and report meet.

    prepare (settle, check, quote) -> commit: reserve (durable) -> draw -> seal -> publish -> commit

`prepare` reads only names, storage types and public counts, and charges nothing; `prepared.py` is the
rest of the walk. This module imports what opens rows and no more: they are decoded while `prepare`
imports what the release needs further.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from adumbra.data.opening import open_source
from adumbra.data.sources import Source, WatchedSource
from adumbra.engine.local import Engine, LocalEngine
from adumbra.errors import require
from adumbra.mechanisms.methods import as_schema, method_of, plan
from adumbra.schema.schema import Schema
from adumbra.starting import uncollected

if TYPE_CHECKING:
    from adumbra.answers.askable import AskableRelease
    from adumbra.attestation.signers import Signer
    from adumbra.mechanisms.base import Config
    from adumbra.prepared import PreparedRelease
    from adumbra.privacy.ledger import Ledger

__all__ = ["plan", "prepare", "prepare_in_memory", "release"]

NOT_DECLARED = "not declared"
COMPARED = "earlier releases were compared with the private rows"
SHOWN_ENTRIES = 6
ESTIMATOR = "estimator"  # the population of the account in memory that pays for one fit


def prepare(  # noqa: PLR0913 - each keyword is one public decision
    data: object,
    config: "Config",
    *,
    schema: Schema | str | Path,
    ledger: "str | Path | Ledger",
    population: str,
    out: str | Path,
    engine: Engine | None = None,
    about: Mapping[str, object] | None = None,
    before_dp: str = NOT_DECLARED,
    key: "Signer | str | Path | None" = None,
    check: bool = True,
) -> "PreparedRelease":
    """Settle a release and check all that can be foreseen; charges nothing. Takes what `release` takes.

    Use the result as a context manager, or `close` it: it holds a ledger and rows. With `check=False`
    the plan can be shown first; call `check` then.

    Raises
    ------
    What `release` would raise before the charge.
    """
    source = WatchedSource(open_source(data, as_schema(schema)))
    pin, method = source.pin(), method_of(config)  # at once: all that follows is settled for these rows
    engine = LocalEngine() if engine is None else engine
    verbs = (getattr(engine, verb, None) for verb in ("fold", "map_blocks"))
    usable = all(map(callable, verbs)) and not isinstance(engine, type)
    require(usable, f"engine of type {type(engine).__name__}: use LocalEngine()")
    with ExitStack() as undone:  # unless all goes well
        undone.callback(source.end)
        getattr(type(engine), "begin", lambda *_: None)(engine, source)  # if it reads in this process
        with uncollected():  # most of what a release needs: rows are decoded in the meantime
            from adumbra.attestation.signers import open_key  # noqa: PLC0415
            from adumbra.mechanisms.sizes import on_threads  # noqa: PLC0415
            from adumbra.prepared import PreparedRelease  # noqa: PLC0415
            from adumbra.privacy.ledger import Ledger, open_ledger  # noqa: PLC0415

            with on_threads(getattr(engine, "threads", None)):  # its size follows them
                settled = method.settle(config, source.schema)
        signer = open_key(key) if isinstance(key, str | Path) else key
        known = signer is None or callable(getattr(signer, "sign", None))
        require(known, f"key of type {type(key).__name__}: give its path, or what `open_key` returns")
        book = ledger if isinstance(ledger, Ledger) else open_ledger(ledger)
        if book is not ledger:
            undone.callback(book.close)
        prepared = PreparedRelease(
            method=method,
            settled=settled,
            source=source,
            pin=pin,
            ledger=book,
            population=population,
            out=Path(out),
            engine=engine,
            about=about or {},
            before_dp=_before(book, population) if before_dp == NOT_DECLARED else before_dp,
            is_ledger_ours=book is not ledger,
            signer=signer,
        )
        if check:
            prepared.check()
        undone.pop_all()
    return prepared


def prepare_in_memory(source: Source, config: "Config") -> "PreparedRelease":
    """The release of one fit: an account in memory pays, and `draw` gives what was released."""
    with uncollected():
        from adumbra.prepared import PreparedRelease  # noqa: PLC0415
        from adumbra.privacy.ledger import Population, memory_ledger  # noqa: PLC0415

    watched = WatchedSource(source)
    method = method_of(config)
    settled = method.settle(config, watched.schema)
    amount = settled.plan.guarantee
    epsilon = amount.epsilon_at(amount.delta) if amount.delta else amount.epsilon_at(0.0)
    ledger = memory_ledger()
    ledger.register(Population(ESTIMATOR, amount.unit, amount.neighbours, epsilon, amount.delta))
    return PreparedRelease(
        method=method,
        settled=settled,
        source=watched,
        pin=source.pin(),
        ledger=ledger,
        population=ESTIMATOR,
        out=None,
        engine=LocalEngine(),
        about={},
        before_dp=NOT_DECLARED,
        is_ledger_ours=True,
    )


def release(  # noqa: PLR0913 - the main entry point: each keyword is one public decision
    data: object,
    config: "Config",
    *,
    schema: Schema | str | Path,
    ledger: "str | Path | Ledger",
    population: str,
    out: str | Path,
    engine: Engine | None = None,
    about: Mapping[str, object] | None = None,
    before_dp: str = NOT_DECLARED,
    key: "Signer | str | Path | None" = None,
) -> "AskableRelease":
    """Pay for one release, draw it, and publish it in the new folder `out`.

    Parameters
    ----------
    data : what to release: the path of a Parquet, CSV or TSV file, a folder or glob of them, or a FIMI
        `.dat` file; a `.sql` file or a `SqlQuery`; an address in an object store; a table of pandas,
        polars or pyarrow; a numpy array or a scipy.sparse matrix
    config : the config of a method, such as `MomentsConfig(epsilon=1.0)`
    schema : the declared columns, unit and relation: a `Schema`, or the path of a schema file
    ledger : the ledger that pays: an open `Ledger`, a path, or a postgresql:// address
    population : the registered population whose people these rows are
    out : a folder that does not exist yet
    engine : where it runs; `LocalEngine()` unless given
    about : words for the card: title, curator, intended_use, ...; they are public
    before_dp : what was done to the rows, or learned from them, before; it goes on the card
    key : signs the release: what `open_key` gives, or the path of a key; without one it is not signed

    Returns
    -------
    AskableRelease, as `load(out)` gives it; its files were hashed while they were written.

    Raises
    ------
    InvalidInput or BudgetRefused, before anything is charged. What stops it after the charge carries a
    note on which ledger entry stays charged, and what can be done.
    """
    with prepare(
        data,
        config,
        schema=schema,
        ledger=ledger,
        population=population,
        out=out,
        engine=engine,
        about=about,
        before_dp=before_dp,
        key=key,
    ) as prepared:
        return prepared.commit()


def _before(book: "Ledger", population: str) -> str:
    """What the ledger knows to have been learned from the rows before, where nobody declared it."""
    seen = book.evaluated(population)
    listed = ", ".join(seen[-SHOWN_ENTRIES:]) + (" and others" if len(seen) > SHOWN_ENTRIES else "")
    return f"{COMPARED} ({listed}); else {NOT_DECLARED}" if seen else NOT_DECLARED
