"""Where each architecture family keeps the parts of a transformer layer: H, A, Z, Y, X, and its weights."""

from embaudit.checkpoint.anatomy.family import Anatomy, Family, Projection, anatomy_of
from embaudit.checkpoint.anatomy.watch import LayerState, require_fit, watching

__all__ = ["Anatomy", "Family", "LayerState", "Projection", "anatomy_of", "require_fit", "watching"]
