"""The label of projected rows: left out, released as it is because it is public, or randomised.

    public      declared to be known of every row; the guarantee hides everything but it
    randomised  two classes: the code 0 or 1 plus discrete Laplace noise of scale 1/epsilon on whole
                numbers, read as 1 where it is at least 1: true with chance e^epsilon / (1 + e^epsilon),
                which is randomised response
                more: one-hot codes plus Laplace noise of scale 2/epsilon, read as the largest

Under the row unit a randomised label is paid from a share of the budget. Under one-element a changed
cell is the label or a feature, never both, so each gets the whole.

Proof       labels.proof.md, of the budget of rows and label, and of what leaves.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adumbra.data.encode import Encoder
from adumbra.data.sources import Batch
from adumbra.errors import Unsupported, require
from adumbra.mechanisms.base import Calibrated, Noise, calibrate_laplace
from adumbra.mechanisms.fields import refuse_idle
from adumbra.mechanisms.projection.config import DPProConfig, JLLaplaceConfig
from adumbra.mechanisms.projection.rows import AnyBatch, RowSpace, column_names
from adumbra.numerics import Lattice
from adumbra.postprocess.decode import arrow_type, column_array
from adumbra.privacy.conversion import mu_of, mu_to_bounded_range, split_epsilon, split_mu
from adumbra.privacy.grant import Keys, NoiseKey
from adumbra.privacy.noise import add_laplace
from adumbra.relations import Unit
from adumbra.schema.schema import Column, Schema

AnyConfig = DPProConfig | JLLaplaceConfig
LABEL = "label"  # purpose of the noise of randomised labels, a key for each block of 4,096 rows
ONE_HOT_EXPONENT = -10  # grid of one-hot codes: ties of the largest are rare


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """How the label leaves; every field is public."""

    column: Column
    levels: int  # 0: public
    noise: Calibrated | None  # None: public
    kept: float  # chance that a randomised label is the true one


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPart:
    """What a declared label adds to the plan, to the draw and to the card."""

    label: Label | None  # None: it does not leave, or there is none
    field: pa.Field | None  # the released column
    purposes: tuple[str, ...]  # of the noise key that a randomised label asks for
    entries: tuple[Noise, ...]  # its noise, as the card prints it
    notes: tuple[str, ...]  # what happens to it; on the plan, and so on the card
    facts: dict[str, object]  # for whoever learns from it


def label_part(config: AnyConfig, schema: Schema, space: RowSpace) -> LabelPart:
    """How the label leaves, with all that follows from it."""
    label = settle_label(config, space)
    notes = _notes(schema, label)
    if label is None:
        return LabelPart(label=None, field=None, purposes=(), entries=(), notes=notes, facts={})
    return LabelPart(
        label=label,
        field=pa.field(label.column.name, arrow_type(label.column)),
        purposes=() if label.noise is None else (LABEL,),
        entries=() if label.noise is None else (label.noise.entry(LABEL, is_pure=True),),
        notes=notes,
        facts={"label": _facts(label)},
    )


def _facts(label: Label) -> dict[str, object]:
    """What a recipient needs to learn from the labels."""
    if label.noise is None:
        return {"name": label.column.name, "released": "public"}
    return {"name": label.column.name, "released": "randomised", "kept": label.kept}


def settle_label(config: AnyConfig, space: RowSpace) -> Label | None:
    """How the label leaves; None where it does not, or where there is none."""
    if config.label == "randomised" and space.spans:
        raise Unsupported(
            f"label=randomised with neighbours={space.neighbours}: a class does not move by an amount; "
            "leave the label out, or release it as it is with label=public if it is known anyhow"
        )
    if config.label != "randomised" or space.unit is Unit.ELEMENT:
        case = "with unit=element: label and features cost their maximum"
        idle = case if config.label == "randomised" else f"with label={config.label}"
        refuse_idle(config, {"label_share": idle})
    column = space.encoder.label if space.encoder is not None else None
    if config.label == "left-out":
        return None
    require(column is not None, f"label={config.label}: the schema declares no label; declare one")
    assert column is not None  # noqa: S101  (for mypy; `require` raised)
    taken = column.name in column_names(config.n_components)
    require(not taken, f"label={config.label}: {column.name!r} is the name of a component; rename it")
    if config.label == "public":
        return Label(column=column, levels=0, noise=None, kept=1.0)
    assert space.encoder is not None  # noqa: S101  (it has a label)
    levels = space.encoder.label_levels
    require(levels >= 2, f"label={config.label}: {column.name!r} has one class only")
    epsilon = label_epsilon(config, space.unit)
    noise = label_noise(epsilon, levels)
    return Label(column=column, levels=levels, noise=noise, kept=_kept(levels, noise))


def _notes(schema: Schema, label: Label | None) -> tuple[str, ...]:
    """What happens to a declared label, in one sentence; on the plan, and so on the card."""
    if schema.label is None:
        return ()
    if label is None:
        ways = "label=public (if it is known of everybody anyhow) or label=randomised keep it"
        return (f"The label {schema.label} is left out of the release; {ways}.",)
    if label.noise is None:
        hidden = "the guarantee hides a change of anything but it"
        return (f"The label {schema.label} is released as it is, declared public: {hidden}.",)
    chance = (
        f"it is the true one with chance {label.kept:.3g} ({1.0 / label.levels:.3g}: no information)"
    )
    return (f"The label {schema.label} is randomised: {chance}.",)


def row_amount(config: AnyConfig, unit: Unit) -> float:
    """Epsilon (pure) or mu that the projected rows get."""
    return _amounts(config, unit)[0]


def label_epsilon(config: AnyConfig, unit: Unit) -> float:
    """Epsilon of a randomised label; under delta the one whose mu is its part."""
    amount = _amounts(config, unit)[1]
    return amount if isinstance(config, JLLaplaceConfig) else mu_to_bounded_range(amount) / 2


def _amounts(config: AnyConfig, unit: Unit) -> tuple[float, float]:
    """Of rows and label: parts of the whole under the row unit, the whole each under one-element."""
    is_pure = isinstance(config, JLLaplaceConfig)
    whole = config.epsilon if is_pure else mu_of(config.epsilon, config.delta)
    if config.label != "randomised" or unit is Unit.ELEMENT:
        return whole, whole
    shares = (1.0 - config.label_share, config.label_share)
    rows, label = (split_epsilon if is_pure else split_mu)(whole, shares)
    return rows, label


def label_noise(epsilon: float, levels: int) -> Calibrated:
    """Noise of a code of 0 or 1 (L1 1, on whole numbers), or of one-hot codes (L1 2)."""
    if levels == 2:
        noise = calibrate_laplace(1.0, epsilon, exponent=0, rounding=1.0)
    else:
        noise = calibrate_laplace(2.0, epsilon, exponent=ONE_HOT_EXPONENT, rounding=float(levels))
    fine = noise.exponent <= 0  # codes are whole numbers on the grid
    require(fine, "label_share: too small a budget for whole codes of the label; give it more")
    return noise


def released_label(label: Label | None, space: RowSpace, batch: AnyBatch, keys: Keys) -> pa.Array | None:
    """The label column of one block, as settled."""
    if label is None or space.encoder is None or not isinstance(batch, Batch):
        return None
    if label.noise is None:
        return public_label(label, space.encoder, batch)
    return noisy_label(label, space.encoder, batch, keys.key(LABEL, batch.noise_block))


def noisy_label(label: Label, encoder: Encoder, batch: Batch, key: NoiseKey) -> pa.Array:
    """The randomised label of one block of rows: noise once, then the nearest class."""
    codes, noise = encoder.labels(batch), label.noise
    assert noise is not None  # noqa: S101  (randomised)
    if label.levels == 2:
        noisy = add_laplace(Lattice(codes, 0), noise.scale, key).units
        chosen = (noisy >= 1).astype(np.int64)
    else:
        hot = (codes[:, None] == np.arange(label.levels)).astype(np.int64)
        value = Lattice(hot << -noise.exponent, noise.exponent)
        chosen = np.argmax(add_laplace(value, noise.scale, key).units, axis=1)
    return column_array(label.column, chosen.astype(np.float64) + label.column.limits[0])


def public_label(label: Label, encoder: Encoder, batch: Batch) -> pa.Array:
    """The label as it is."""
    place = encoder.schema.label_index
    assert place is not None  # noqa: S101  (there is a label)
    return column_array(label.column, np.asarray(batch.values[:, place], dtype=np.float64))


def _kept(levels: int, noise: Calibrated) -> float:
    """The chance that the true class is read: its Laplace number plus 1 is above all others."""
    if levels == 2:
        return 1.0 / (1.0 + math.exp(-1.0 / noise.scale))

    def below(x: float) -> float:
        return 0.5 * math.exp(x) if x < 0 else 1.0 - 0.5 * math.exp(-x)

    from scipy.integrate import quad  # noqa: PLC0415 - start-up that few labels need

    shift = 1.0 / noise.scale
    law = quad(
        lambda x: 0.5 * math.exp(-abs(x)) * below(x + shift) ** (levels - 1),
        -40.0,
        40.0,
        points=(-shift, 0.0),
    )
    return float(law[0])
