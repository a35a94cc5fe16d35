"""Adumbra: release a private outline of a high-dimensional table.

The names below are the whole public interface. Each is imported when first used, so that
`import adumbra` and `adumbra --help` stay fast.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from adumbra.starting import uncollected
from adumbra.version import __version__

if TYPE_CHECKING:
    from adumbra.answers.askable import AskableRelease, CombinedReleases, combine, load
    from adumbra.answers.estimate import Estimate
    from adumbra.attestation.signers import new_key, open_key
    from adumbra.attestation.trust import Trust
    from adumbra.data.person_sizes import rows_per_person
    from adumbra.data.sql import SqlQuery
    from adumbra.engine.local import LocalEngine
    from adumbra.errors import (
        AdumbraError,
        BudgetRefused,
        InvalidInput,
        LedgerError,
        NoiseKeyReused,
        PrivacyCostWarning,
        SchemaError,
        Unsupported,
        VerificationFailed,
    )
    from adumbra.estimators import (
        DPPro,
        JLLaplace,
        LDAPublisher,
        MomentsSynthesizer,
        PCAPublisher,
        RONGauss,
        TopKColumns,
    )
    from adumbra.estimators.bootstrap import Bootstrapped, bootstrap
    from adumbra.evaluate.evaluation import Evaluation, evaluate
    from adumbra.mechanisms.answers import AnswersConfig
    from adumbra.mechanisms.base import Plan
    from adumbra.mechanisms.bounds import BoundsConfig
    from adumbra.mechanisms.bounds.filling import fill_schema, persons_within
    from adumbra.mechanisms.lda import LDAConfig
    from adumbra.mechanisms.methods import plan
    from adumbra.mechanisms.moments import MomentsConfig
    from adumbra.mechanisms.pca import PCAConfig
    from adumbra.mechanisms.projection import DPProConfig, JLLaplaceConfig
    from adumbra.mechanisms.ron_gauss import RONGaussConfig
    from adumbra.mechanisms.sampling import sample
    from adumbra.mechanisms.topk import TopKConfig
    from adumbra.postprocess.distances import DistanceModel
    from adumbra.prepared import PreparedRelease
    from adumbra.privacy.guarantee import PrivacyGuarantee
    from adumbra.privacy.ledger import Ledger, Population, create_ledger, open_ledger
    from adumbra.relations import Moved, Moves, Neighbours, Unit
    from adumbra.release.artifact import Release, Verified, verify
    from adumbra.release.resuming import resume
    from adumbra.report.exports import export
    from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
    from adumbra.workflow import prepare, release

_NAMES = {  # by the module that has them
    "adumbra.answers.askable": "AskableRelease CombinedReleases combine load",
    "adumbra.answers.estimate": "Estimate",
    "adumbra.attestation.signers": "new_key open_key",
    "adumbra.attestation.trust": "Trust",
    "adumbra.data.person_sizes": "rows_per_person",
    "adumbra.data.sql": "SqlQuery",
    "adumbra.engine.local": "LocalEngine",
    "adumbra.errors": "AdumbraError BudgetRefused InvalidInput LedgerError NoiseKeyReused "
    "PrivacyCostWarning SchemaError Unsupported VerificationFailed",
    "adumbra.estimators": "DPPro JLLaplace LDAPublisher MomentsSynthesizer "
    "PCAPublisher RONGauss TopKColumns",
    "adumbra.estimators.bootstrap": "Bootstrapped bootstrap",
    "adumbra.evaluate.evaluation": "Evaluation evaluate",
    "adumbra.mechanisms.answers": "AnswersConfig",
    "adumbra.mechanisms.base": "Plan",
    "adumbra.mechanisms.bounds": "BoundsConfig",
    "adumbra.mechanisms.bounds.filling": "fill_schema persons_within",
    "adumbra.mechanisms.lda": "LDAConfig",
    "adumbra.mechanisms.methods": "plan",
    "adumbra.mechanisms.moments": "MomentsConfig",
    "adumbra.mechanisms.pca": "PCAConfig",
    "adumbra.mechanisms.projection": "DPProConfig JLLaplaceConfig",
    "adumbra.mechanisms.ron_gauss": "RONGaussConfig",
    "adumbra.mechanisms.sampling": "sample",
    "adumbra.mechanisms.topk": "TopKConfig",
    "adumbra.postprocess.distances": "DistanceModel",
    "adumbra.prepared": "PreparedRelease",
    "adumbra.privacy.guarantee": "PrivacyGuarantee",
    "adumbra.privacy.ledger": "Ledger Population create_ledger open_ledger",
    "adumbra.relations": "Moved Moves Neighbours Unit",
    "adumbra.release.artifact": "Release Verified verify",
    "adumbra.release.resuming": "resume",
    "adumbra.report.exports": "export",
    "adumbra.schema.schema": "Column ItemSpec Kind Schema",
    "adumbra.workflow": "prepare release",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AdumbraError",
    "AnswersConfig",
    "AskableRelease",
    "Bootstrapped",
    "BoundsConfig",
    "BudgetRefused",
    "Column",
    "CombinedReleases",
    "DPPro",
    "DPProConfig",
    "DistanceModel",
    "Estimate",
    "Evaluation",
    "InvalidInput",
    "ItemSpec",
    "JLLaplace",
    "JLLaplaceConfig",
    "Kind",
    "LDAConfig",
    "LDAPublisher",
    "Ledger",
    "LedgerError",
    "LocalEngine",
    "MomentsConfig",
    "MomentsSynthesizer",
    "Moved",
    "Moves",
    "Neighbours",
    "NoiseKeyReused",
    "PCAConfig",
    "PCAPublisher",
    "Plan",
    "Population",
    "PreparedRelease",
    "PrivacyCostWarning",
    "PrivacyGuarantee",
    "RONGauss",
    "RONGaussConfig",
    "Release",
    "Schema",
    "SchemaError",
    "SqlQuery",
    "TopKColumns",
    "TopKConfig",
    "Trust",
    "Unit",
    "Unsupported",
    "VerificationFailed",
    "Verified",
    "__version__",
    "bootstrap",
    "combine",
    "create_ledger",
    "evaluate",
    "export",
    "fill_schema",
    "load",
    "new_key",
    "open_key",
    "open_ledger",
    "persons_within",
    "plan",
    "prepare",
    "release",
    "resume",
    "rows_per_person",
    "sample",
    "verify",
]


class _Package(ModuleType):
    """This package: importing `adumbra.release` or `adumbra.evaluate` hides no function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in ("evaluate", "release") and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'adumbra' has no attribute {name!r}")
    with uncollected():
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
