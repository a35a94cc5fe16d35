"""Settle and draw a method on its own, as `workflow` does, with a grant that a test makes."""

from adumbra.data.sources import WatchedSource
from adumbra.engine.local import LocalEngine
from adumbra.mechanisms.methods import method_of
from adumbra.privacy.recorded_noise import fixed_grant


def settled_on(source, config):
    """The public decisions for a source: its schema is closed with the public number of rows."""
    return method_of(config).settle(config, WatchedSource(source).schema)


def draw(source, config, *, grant=None, seed=0, engine=None):
    """The draft of a release with known noise."""
    settled = settled_on(source, config)
    grant = grant or fixed_grant(seed, settled.plan.guarantee, settled.plan.purposes)
    return method_of(config).draw(settled, source, engine or LocalEngine(threads=1), grant)


def released(draft, name="data"):
    """A released table, all of it, also where its rows are drawn now."""
    return draft.table(name)
