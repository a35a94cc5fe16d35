"""RON-Gauss: `RONGaussConfig`, `plan` and `release`; see `mechanism`."""

from adumbra.mechanisms.ron_gauss.mechanism import METHOD, RONGaussConfig, plan, release, settle

__all__ = ["METHOD", "RONGaussConfig", "plan", "release", "settle"]
