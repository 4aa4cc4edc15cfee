"""What a run leaves behind: every iterate, and its estimated losses on unseen rows."""

from .held_out import HeldOut
from .paths import CoefPath
from .record import Record
from .run import Run

__all__ = ["CoefPath", "HeldOut", "Record", "Run"]
