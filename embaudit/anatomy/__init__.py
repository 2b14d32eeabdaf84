"""Where each architecture family keeps the parts of a transformer layer: H, A, Z, Y, X, and its weights."""

from embaudit.anatomy.family import Family, Projection
from embaudit.anatomy.model import Anatomy, anatomy_of
from embaudit.anatomy.watch import LayerState, require_fit, watching

__all__ = ["Anatomy", "Family", "LayerState", "Projection", "anatomy_of", "require_fit", "watching"]
