"""A prepared release: check, pay, draw, seal and publish what `workflow.prepare` has settled.

    reserve (durable) -> draw -> seal -> publish -> commit

A crash after `reserve` is charged; what was sealed can be published later (`ledger resume`), and nothing
is drawn twice under one id. All that a release needs of libraries before its rows are drawn is imported
here, so before anything is charged, and while the first rows are decoded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Self

from adumbra.attestation.signers import Signer
from adumbra.data.sources import WatchedSource
from adumbra.engine.local import Engine
from adumbra.errors import ChargeNote, InvalidInput, LedgerError, raise_alone, require, system_fault
from adumbra.mechanisms.base import Draft, Plan, Published, Settled
from adumbra.mechanisms.fields import config_facts
from adumbra.mechanisms.method import Method
from adumbra.mechanisms.pictured import pictures_of
from adumbra.mechanisms.sizes import PROCESS
from adumbra.postprocess.pictures import Pictures
from adumbra.privacy.grant import Grant
from adumbra.privacy.ledger import Ledger, Quote
from adumbra.privacy.noise import require_kernel
from adumbra.release.artifact import open_written
from adumbra.release.card import LIMITS, Card, build_card, drawn_card, require_card, stamped
from adumbra.release.detached import write_beside
from adumbra.release.provenance import provenance, require_libraries
from adumbra.release.storage import (
    LONGEST_ENTRY,
    date_files,
    require_room,
    require_space,
    staging,
    write_staged,
)
from adumbra.version import __version__

if TYPE_CHECKING:
    from adumbra.answers.askable import AskableRelease

# How a paid entry becomes a grant: from the ledger, the entry and the purposes of its plan. A release
# opens its grant by `Ledger.draw` and takes no other; the auditor calls `_publish` with its own.
OpenGrant = Callable[[Ledger, str, tuple[str, ...]], Grant]

READING = 0.1  # seconds after which the first rows are with the workers, if there are many


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRelease:
    """One release, settled and checked, not paid: show `plan` and `quote`, then `commit` or `close`."""

    method: Method[Any, Any]
    settled: Settled[Any, Any]
    source: WatchedSource = field(repr=False)
    pin: str = field(repr=False)
    ledger: Ledger = field(repr=False)
    population: str
    out: Path | None
    engine: Engine = field(repr=False)
    about: Mapping[str, object]
    before_dp: str
    is_ledger_ours: bool = field(repr=False)  # opened here, so closed here
    signer: Signer | None = None  # None: the release is not signed
    card: Card = field(default_factory=dict, repr=False)  # without what is drawn; empty until `check`
    closed: Event = field(default_factory=Event, repr=False)
    plan: Plan = field(init=False)  # cost, noise and expected error
    request: Mapping[str, Any] = field(init=False, repr=False)  # what is asked, as the log holds it

    def __post_init__(self) -> None:
        planned, schema = self.settled.plan, self.settled.schema
        config = config_facts(self.settled.config)
        asked = {"method": planned.method, "config": config, "schema": schema.digest()}
        object.__setattr__(self, "plan", planned)
        object.__setattr__(self, "request", asked)

    @property
    def quote(self) -> tuple[Quote, ...]:
        """What this release takes of each account that pays, the population's own first."""
        return self.ledger.quote(self.population, self.plan.guarantee)

    def check(self) -> None:
        """Refuse what would fail after the charge, from public numbers; charges nothing."""
        _require_room(self)
        require_kernel()
        require_libraries(item_sets=self.settled.schema.items is not None)
        getattr(self.engine, "require_ready", lambda _: None)(self.source)  # workers, if there are any
        head = self.ledger.check(self.population, self.plan.guarantee, self.request)
        card = _card(self, {"entry": LONGEST_ENTRY, **head.to_dict()})
        require_card(card, 0 if self.plan.size is None else self.plan.size.card)
        self.ledger.require_writable()
        self.card.update(card)

    def commit(self) -> "AskableRelease":
        """Pay, draw and publish the new folder. An error after the charge says what stays charged."""
        if self.out is None:
            raise InvalidInput("out=None: prepared without a folder; give one to `prepare`")
        entry, digest = _publish(self, self.out, Ledger.draw)
        with _noted(self, entry):
            from adumbra.answers.askable import askable  # noqa: PLC0415 - see `_import_behind`

            published = askable(open_written(self.out, digest))
            date_files(self.out)  # reading it set the times of access
        return published

    def draw(self) -> Draft:
        """Pay and draw without a folder; the rows and arrays stay in memory."""
        with _paid(self, Ledger.draw) as (_, grant):
            return self.method.draw(self.settled, self.source, self.engine, grant)

    def close(self) -> None:
        """Close the ledger, if `prepare` opened it, drop rows; nothing is charged, now or later."""
        self.closed.set()
        self.source.end()
        if self.is_ledger_ours:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_room(prepared: PreparedRelease) -> None:
    """The place of a release may have been taken since it was prepared, and memory and disk, too."""
    size = prepared.plan.size
    output, memory = (0, 0) if size is None else (size.output, size.memory)
    memory += output if prepared.out is None else 0  # rows that are not written block by block
    require_room(prepared.out, output, memory, PROCESS, getattr(prepared.engine, "memory", None))
    parts = getattr(prepared.engine, "parts", None)  # where workers put released rows
    if parts is not None and prepared.plan.releases_rows:
        require_space(parts, output, "parts")


@contextmanager
def _paid(prepared: PreparedRelease, open_grant: OpenGrant) -> Iterator[tuple[str, Grant]]:
    """The ledger's entry and its grant; an error inside carries a note on what stays charged."""
    require(not prepared.closed.is_set(), "release: was closed; prepare it again")
    book, planned = prepared.ledger, prepared.plan
    changed = prepared.source.pin() != prepared.pin
    require(not changed, "data: changed since the release was prepared; prepare it again")
    if prepared.out is None or prepared.card:
        _require_room(prepared)
    else:
        prepared.check()
    entry = book.reserve(
        prepared.population, planned.guarantee, request=prepared.request, source_pin=prepared.pin
    )
    with _noted(prepared, entry):
        yield entry, open_grant(book, entry, planned.purposes)


@contextmanager
def _noted(prepared: PreparedRelease, entry: str) -> Iterator[None]:
    """An error inside says what stays charged; one of the machine gets our name, without its words."""
    try:
        yield
    except BaseException as error:  # Ctrl-C too
        named = system_fault(error, f"out={prepared.out}" if prepared.out else "draw")
        (named or error).add_note(ChargeNote(_standing(prepared.ledger, entry)))
        if named is None:
            raise
    else:
        return
    raise_alone(named)


def _standing(book: Ledger, entry: str) -> str:
    """Where the entry stands; in words that need no ledger, if it cannot be asked any more."""
    try:
        return book.standing(entry)
    except LedgerError:
        return f"entry={entry}: stays charged; the ledger cannot be read now, see `adumbra ledger show`"


def _publish(prepared: PreparedRelease, target: Path, open_grant: OpenGrant) -> tuple[str, str]:
    """Pay, draw, seal, publish, commit: entry and digest. The auditor has its own `open_grant`."""
    book, source = prepared.ledger, prepared.source
    with _paid(prepared, open_grant) as (entry, grant):
        fingerprint = book.fingerprint(source.watched_columns)
        source.watch(fingerprint.update, fingerprint)
        _import_behind(prepared.method.steps().behind)
        draft = prepared.method.draw(prepared.settled, source, prepared.engine, grant)
        paid = {"entry": entry, **book.head().to_dict()}
        noise = [asdict(one) for one in draft.noise]
        about, facts = prepared.about, draft.facts
        card = drawn_card(prepared.card, about=about, ledger=paid, mechanisms=noise, facts=facts)
        if grant.not_private:
            card = stamped(card)
        published = Published(arrays=draft.arrays, tables=draft.tables)
        page = partial(_page, pictures=pictures_of(prepared.method, prepared.settled, published))
        with staging(target, entry) as staged:
            tables = {**draft.tables, **draft.pending}
            digest = write_staged(staged, tables=tables, arrays=draft.arrays, card=card, page=page)
            if source.pin() != prepared.pin:
                raise LedgerError(f"entry={entry}: the data changed while read; nothing is published")
            seen = fingerprint if source.is_seen else None
            book.seal(entry, staged=staged, digest=digest, fingerprint=seen)
            write_beside(staged, book.proof(entry), prepared.signer)
            date_files(staged)
            book.publish(entry, target)
            book.commit(entry)
    return entry, digest


def _import_behind(names: tuple[str, ...]) -> None:
    """Import what follows the rows in a thread, while they are read: the page, and what loads it all.

    Before them libraries of the method's; one that fails says so where the method asks for it.
    """

    def load() -> None:
        for name in names:
            with suppress(Exception):
                import_module(name)
        from adumbra.answers import askable  # noqa: F401, PLC0415 - slow, as what the next one imports
        from adumbra.report.page import compile_card  # noqa: PLC0415

        compile_card()

    behind = Timer(READING, load)
    behind.daemon = True
    with suppress(RuntimeError):  # no thread to be had: it is imported later
        behind.start()


def _page(card: Card, pictures: Pictures) -> str:
    from adumbra.report.page import render  # noqa: PLC0415 - see `_import_behind`

    return render(card, pictures)


def _card(prepared: PreparedRelease, paid: Mapping[str, object]) -> Card:
    """The card as far as the plan knows it; `drawn_card` adds what was drawn."""
    planned, schema = prepared.plan, prepared.settled.schema
    card = build_card(
        method=planned.method,
        config=prepared.request["config"],
        guarantee=planned.guarantee,
        schema_dict=schema.facts(),
        declared_by=schema.declared_by,
        mechanisms=[asdict(noise) for noise in planned.noise],
        expected_error=dict(planned.expected),
        ledger=paid,
        about=prepared.about,
        population=prepared.population,
        notes=planned.notes,
        limits=LIMITS,
        facts={},
        adumbra_version=__version__,
        before_dp=prepared.before_dp,
    )
    card["provenance"] = provenance()
    who = prepared.signer
    return card if who is None else {**card, "signed_by": who.public.fingerprint()}
