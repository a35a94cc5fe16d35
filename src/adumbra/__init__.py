"""Adumbra: release a private outline of a high-dimensional table.

The names below are the whole public interface. Each is imported when first used, so that
`import adumbra` and `adumbra --help` stay fast.
"""

import gc
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

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
    from adumbra.privacy.guarantee import PrivacyGuarantee
    from adumbra.privacy.ledger import Ledger, Population, create_ledger, open_ledger
    from adumbra.relations import Moved, Moves, Neighbours, Unit
    from adumbra.release.artifact import Release, Verified, verify
    from adumbra.release.resuming import resume
    from adumbra.report.exports import export
    from adumbra.schema.schema import Column, ItemSpec, Kind, Schema
    from adumbra.workflow import PreparedRelease, prepare, release

_HOMES = {
    "AdumbraError": "adumbra.errors",
    "AnswersConfig": "adumbra.mechanisms.answers",
    "AskableRelease": "adumbra.answers.askable",
    "Bootstrapped": "adumbra.estimators.bootstrap",
    "BoundsConfig": "adumbra.mechanisms.bounds",
    "BudgetRefused": "adumbra.errors",
    "Column": "adumbra.schema.schema",
    "CombinedReleases": "adumbra.answers.askable",
    "DPPro": "adumbra.estimators",
    "DPProConfig": "adumbra.mechanisms.projection",
    "DistanceModel": "adumbra.postprocess.distances",
    "Estimate": "adumbra.answers.estimate",
    "Evaluation": "adumbra.evaluate.evaluation",
    "InvalidInput": "adumbra.errors",
    "ItemSpec": "adumbra.schema.schema",
    "JLLaplace": "adumbra.estimators",
    "JLLaplaceConfig": "adumbra.mechanisms.projection",
    "Kind": "adumbra.schema.schema",
    "LDAConfig": "adumbra.mechanisms.lda",
    "LDAPublisher": "adumbra.estimators",
    "Ledger": "adumbra.privacy.ledger",
    "LedgerError": "adumbra.errors",
    "LocalEngine": "adumbra.engine.local",
    "MomentsConfig": "adumbra.mechanisms.moments",
    "MomentsSynthesizer": "adumbra.estimators",
    "Moved": "adumbra.relations",
    "Moves": "adumbra.relations",
    "Neighbours": "adumbra.relations",
    "NoiseKeyReused": "adumbra.errors",
    "PCAConfig": "adumbra.mechanisms.pca",
    "PCAPublisher": "adumbra.estimators",
    "Plan": "adumbra.mechanisms.base",
    "Population": "adumbra.privacy.ledger",
    "PreparedRelease": "adumbra.workflow",
    "PrivacyCostWarning": "adumbra.errors",
    "PrivacyGuarantee": "adumbra.privacy.guarantee",
    "RONGauss": "adumbra.estimators",
    "RONGaussConfig": "adumbra.mechanisms.ron_gauss",
    "Release": "adumbra.release.artifact",
    "Schema": "adumbra.schema.schema",
    "SchemaError": "adumbra.errors",
    "SqlQuery": "adumbra.data.sql",
    "TopKColumns": "adumbra.estimators",
    "TopKConfig": "adumbra.mechanisms.topk",
    "Trust": "adumbra.attestation.trust",
    "Unit": "adumbra.relations",
    "Unsupported": "adumbra.errors",
    "VerificationFailed": "adumbra.errors",
    "Verified": "adumbra.release.artifact",
    "bootstrap": "adumbra.estimators.bootstrap",
    "combine": "adumbra.answers.askable",
    "create_ledger": "adumbra.privacy.ledger",
    "evaluate": "adumbra.evaluate.evaluation",
    "export": "adumbra.report.exports",
    "fill_schema": "adumbra.mechanisms.bounds.filling",
    "load": "adumbra.answers.askable",
    "new_key": "adumbra.attestation.signers",
    "open_key": "adumbra.attestation.signers",
    "open_ledger": "adumbra.privacy.ledger",
    "persons_within": "adumbra.mechanisms.bounds.filling",
    "plan": "adumbra.mechanisms.methods",
    "prepare": "adumbra.workflow",
    "release": "adumbra.workflow",
    "resume": "adumbra.release.resuming",
    "rows_per_person": "adumbra.data.person_sizes",
    "sample": "adumbra.mechanisms.sampling",
    "verify": "adumbra.release.artifact",
}

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
    value = getattr(_imported(home), name)
    globals()[name] = value
    return value


def _imported(home: str) -> ModuleType:
    """Import a module without looking for garbage: imports make none, and the search takes as long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(home)
    finally:
        if was_enabled:
            gc.enable()


def __dir__() -> list[str]:
    """The public names."""
    return __all__
