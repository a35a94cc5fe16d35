"""The public shape of a RON-Gauss model: columns, directions, classes, and which sums are taken."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from adumbra.errors import require
from adumbra.matrices import ProjectionMatrix, clip_radius, orthonormal_matrix
from adumbra.numerics import ROW_BITS
from adumbra.relations import Neighbours, Reach
from adumbra.schema.layout import Layout
from adumbra.schema.schema import Schema

Mode = Literal["unsupervised", "supervised", "gmm"]
Covariance = Literal["class", "tied", "sphere"]

TARGET = 2 ** (ROW_BITS - 1)  # of the target in a supervised Gram: one half ...
INTERCEPT = 2 ** (ROW_BITS - 2)  # ... and of the 1 beside it: a quarter, as one number needs little
CONSTANT = 2**ROW_BITS  # of the 1 beside publicly centred rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is modelled: encoded rows of width m, p random directions, classes or a target."""

    layout: Layout
    mode: Mode
    norm: float
    matrix_seed: int
    clip_tail: float
    private_centring: bool
    unit_rows: bool  # every row scaled to length 1 first
    normalise: bool  # every row scaled to length 1 again after centring
    columns: bool  # the first mean is of all m columns, not of the p directions alone
    clip_factor: float  # centred projected rows are clipped at this times their noisy spread
    covariance: Covariance = "tied"  # of a mixture
    components: int = 1

    @property
    def width(self) -> int:
        """m, encoded columns."""
        return self.layout.width

    @property
    def neighbours(self) -> Neighbours:
        """The schema's relation."""
        return self.layout.schema.reach.neighbours

    @property
    def reach(self) -> Reach:
        """How far one unit reaches into the sums."""
        return self.layout.schema.reach

    @property
    def classes(self) -> int | None:
        """How many classes the mixture has; None without a mixture."""
        return self.layout.label_levels if self.mode == "gmm" else None

    @property
    def radius(self) -> float:
        """r: the public Beta radius of a projected unit row."""
        return clip_radius("haar", self.width, self.components, self.clip_tail) * math.sqrt(
            self.components / self.width
        )

    @property
    def mean_classes(self) -> int | None:
        """How many first means there are: one per class where columns are wanted back, else one."""
        return self.classes if self.columns else None

    @property
    def mean_width(self) -> int:
        """Coordinates of the first mean."""
        return self.width if self.columns else self.components

    def matrix(self) -> ProjectionMatrix:
        """W (m x p), orthonormal columns of a Haar matrix, from its public seed."""
        return orthonormal_matrix(self.width, self.components, matrix_seed=self.matrix_seed)

    def with_components(self, components: int) -> "Space":
        """The same space with p directions."""
        require(
            1 <= components <= self.width,
            f"n_components={components}: must be at most the {self.width} encoded columns",
        )
        return replace(self, components=components)

    def with_covariance(self, covariance: Covariance) -> "Space":
        """The same space with another covariance of the mixture."""
        return replace(self, covariance=covariance)


def space_of(  # noqa: PLR0913 - each keyword is one public decision
    schema: Schema,
    *,
    mode: Mode,
    row_norm: float | None,
    matrix_seed: int,
    clip_tail: float,
    private_centring: bool,
    unit_rows: bool,
    normalise: bool,
    columns: bool,
    clip_factor: float,
) -> Space:
    """The space of a schema; refuses a mode that its label cannot serve."""
    schema.require_closed()
    schema.require_filled("RON-Gauss")
    layout = Layout(schema)
    if mode != "unsupervised":
        require(
            schema.label is not None, f"mode={mode}: needs a label; declare one in the schema's [table]"
        )
    if mode == "supervised" and layout.label is not None:
        lower, upper = layout.label.limits
        require(lower < upper, f"label={schema.label}: has one value only; a target needs more")
    if mode == "gmm":
        require(layout.label_levels >= 1, "mode=gmm: the label has no classes")
    norm = layout.norm_upper() if row_norm is None else float(row_norm)
    require(math.isfinite(norm) and norm > 0, f"row_norm={row_norm}: must be finite and above 0")
    return Space(
        layout=layout,
        mode=mode,
        norm=1.0 if unit_rows else norm,
        matrix_seed=matrix_seed,
        clip_tail=clip_tail,
        private_centring=private_centring,
        unit_rows=unit_rows,
        normalise=normalise and private_centring,
        columns=columns or (normalise and private_centring),
        clip_factor=clip_factor,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviations:
    """Standard deviations of the noise, as the model needs them."""

    gram: float  # of a diagonal entry of the Gram, or of a class count
    off_diagonal: float  # of an entry off the diagonal, or of a class sum's coordinate
