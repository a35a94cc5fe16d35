"""The scikit-learn face: thin classes over mechanisms, for arrays and notebooks."""

from adumbra.estimators.projection import DPPro, JLLaplace
from adumbra.estimators.ron_gauss import RONGauss
from adumbra.estimators.topk import TopKColumns

__all__ = ["DPPro", "JLLaplace", "RONGauss", "TopKColumns"]
