"""Adumbra: release a private outline of a high-dimensional table.

The names below are the whole public interface. Each is imported when first used, so that
`import adumbra` and `adumbra --help` stay fast.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from adumbra.version import __version__

if TYPE_CHECKING:
    from adumbra.data.schema import Schema
    from adumbra.estimators import (
        DPPro,
        JLLaplace,
        LDAPublisher,
        MomentsSynthesizer,
        PCAPublisher,
        RONGauss,
        TopKColumns,
    )
    from adumbra.mechanisms.base import Plan
    from adumbra.mechanisms.dppro import DPProConfig
    from adumbra.mechanisms.jl_laplace import JLLaplaceConfig
    from adumbra.mechanisms.lda import LDAConfig
    from adumbra.mechanisms.moments_plan import MomentsConfig
    from adumbra.mechanisms.pca import PCAConfig
    from adumbra.mechanisms.ron_gauss import RONGaussConfig
    from adumbra.mechanisms.topk import TopKConfig
    from adumbra.privacy.guarantee import PrivacyGuarantee
    from adumbra.privacy.ledger import Ledger, Population, create_ledger, open_ledger
    from adumbra.release.artifact import Release
    from adumbra.release.storage import load, verify
    from adumbra.workflow import plan, release

_HOMES = {
    "DPPro": "adumbra.estimators",
    "DPProConfig": "adumbra.mechanisms.dppro",
    "JLLaplace": "adumbra.estimators",
    "JLLaplaceConfig": "adumbra.mechanisms.jl_laplace",
    "LDAConfig": "adumbra.mechanisms.lda",
    "LDAPublisher": "adumbra.estimators",
    "Ledger": "adumbra.privacy.ledger",
    "MomentsConfig": "adumbra.mechanisms.moments_plan",
    "MomentsSynthesizer": "adumbra.estimators",
    "PCAConfig": "adumbra.mechanisms.pca",
    "PCAPublisher": "adumbra.estimators",
    "Plan": "adumbra.mechanisms.base",
    "Population": "adumbra.privacy.ledger",
    "PrivacyGuarantee": "adumbra.privacy.guarantee",
    "RONGauss": "adumbra.estimators",
    "RONGaussConfig": "adumbra.mechanisms.ron_gauss",
    "Release": "adumbra.release.artifact",
    "Schema": "adumbra.data.schema",
    "TopKColumns": "adumbra.estimators",
    "TopKConfig": "adumbra.mechanisms.topk",
    "create_ledger": "adumbra.privacy.ledger",
    "load": "adumbra.release.storage",
    "open_ledger": "adumbra.privacy.ledger",
    "plan": "adumbra.workflow",
    "release": "adumbra.workflow",
    "verify": "adumbra.release.storage",
}

__all__ = [
    "DPPro",
    "DPProConfig",
    "JLLaplace",
    "JLLaplaceConfig",
    "LDAConfig",
    "LDAPublisher",
    "Ledger",
    "MomentsConfig",
    "MomentsSynthesizer",
    "PCAConfig",
    "PCAPublisher",
    "Plan",
    "Population",
    "PrivacyGuarantee",
    "RONGauss",
    "RONGaussConfig",
    "Release",
    "Schema",
    "TopKColumns",
    "TopKConfig",
    "__version__",
    "create_ledger",
    "load",
    "open_ledger",
    "plan",
    "release",
    "verify",
]


class _Package(ModuleType):
    """This package: importing the subpackage `release` does not hide the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "release" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'adumbra' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
