"""Tables as people have them: columns of any type, made into numbers."""

from .encoder import TableEncoder

__all__ = ["TableEncoder"]
