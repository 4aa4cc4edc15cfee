"""Tables as people have them: columns of any type, made into numbers."""

from .encoder import TableEncoder
from .pipeline import TablePipeline

__all__ = ["TableEncoder", "TablePipeline"]
