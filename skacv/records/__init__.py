"""What a run leaves behind: every iterate, and its estimated losses on unseen rows."""

from .held_out import HeldOut
from .record import Record

__all__ = ["HeldOut", "Record"]
