"""Top-k frequent columns of item sets: `TopKConfig`, `plan`, `release`."""

from adumbra.mechanisms.topk.config import Method, TopKConfig
from adumbra.mechanisms.topk.planning import plan
from adumbra.mechanisms.topk.release import release

__all__ = ["Method", "TopKConfig", "plan", "release"]
