"""The scikit-learn face: thin classes over mechanisms, for arrays and notebooks."""

from adumbra.estimators.projection import DPPro, JLLaplace

__all__ = ["DPPro", "JLLaplace"]
