"""The scikit-learn interface: thin classes over mechanisms, for arrays and notebooks."""

from adumbra.estimators.component import LDAPublisher, PCAPublisher
from adumbra.estimators.moments import MomentsSynthesizer
from adumbra.estimators.projection import DPPro, JLLaplace
from adumbra.estimators.ron_gauss import RONGauss
from adumbra.estimators.topk import TopKColumns

__all__ = [
    "DPPro",
    "JLLaplace",
    "LDAPublisher",
    "MomentsSynthesizer",
    "PCAPublisher",
    "RONGauss",
    "TopKColumns",
]
