"""Fixed grants and reference values for the noise tests."""

import mpmath
import numpy as np

from adumbra.numerics import Array, Ints, Lattice
from adumbra.privacy import _tables, noise
from adumbra.privacy.grant import NoiseKey
from adumbra.privacy.guarantee import pure
from adumbra.privacy.recorded_noise import FixedGrant, fixed_grant
from adumbra.relations import Neighbours, Unit

GUARANTEE = pure(1.0, Unit.ROW, Neighbours.REPLACE_ONE)
ADD = {"gaussian": noise.add_gaussian, "laplace": noise.add_laplace}
KINDS = tuple(ADD)
SCALES = (2.0**-10, 0.5, 3.0, 1000.0, 1.3 * 2.0**24, 2.0**30, 2.0**40)


def grant(seed: int = 1, purposes: tuple[str, ...] = ("noise",)) -> FixedGrant:
    return fixed_grant(seed, GUARANTEE, purposes)


def key(block: int = 0, seed: int = 1, purpose: str = "noise") -> NoiseKey:
    return grant(seed, (purpose,)).key(purpose, block)


def draws(kind: str, scale: float | Array, size: int, own_key: NoiseKey) -> Ints:
    """Noise on zeros, in grid steps."""
    return ADD[kind](Lattice(np.zeros(size, np.int64), 0), scale, own_key).units


def reference(kind: str, scale: float, words: Ints) -> Ints:
    """The laws' inverse at 60 digits, by formulas that the sampler does not use."""
    mp = mpmath.MPContext()
    mp.dps = 60
    result = []
    for word in words.tolist():
        u = (mp.mpf(word >> 1) + mp.mpf(0.5)) / mp.mpf(2) ** 63
        if kind == "gaussian":
            size = int(mp.nint(mp.mpf(scale) * mp.sqrt(2) * mp.erfinv(1 - u)))
        else:
            q = mp.exp(-1 / mp.mpf(scale))
            size = max(0, int(mp.floor(mp.log(u * (1 + q) / 2) / mp.log(q))))
        result.append(-size if word & 1 else size)
    return np.array(result)


def set_bounds(monkeypatch, *, coarse: float | None = None, fine: float | None = None) -> None:
    """Pretend an error bound for all octaves: a large one sends samples on, 0 is a planted bug."""
    for name, bound in (("coarse_errors", coarse), ("fine_errors", fine)):
        if bound is not None:
            pretended = np.full(_tables.OCTAVES, bound)
            monkeypatch.setattr(_tables, name, lambda table, scale, pretended=pretended: pretended)
    monkeypatch.setattr(noise, "scaled_table", _tables.scaled_table.__wrapped__)  # nothing cached


def count_tiers(monkeypatch) -> dict[str, int]:
    """How many samples reach the fine and the exact tier."""
    seen = {"fine": 0, "exact": 0}
    true_fine, true_decide = noise.fine, noise.decide

    def fine(words, table):
        seen["fine"] += words.size
        return true_fine(words, table)

    def decide(law, leading, extend):
        seen["exact"] += 1
        return true_decide(law, leading, extend)

    monkeypatch.setattr(noise, "fine", fine)
    monkeypatch.setattr(noise, "decide", decide)
    return seen
