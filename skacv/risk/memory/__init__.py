"""The memory matrix of Bellec & Tan (2024): the risk of every iterate, no row left out.

``memory_matrix`` is the estimate; it stands on the temporal modes of the residuals
(``modes``), on traces (``traces``) of how shocks move later iterates (``tangents``),
and, for rows of uneven norm (``row_norms``), on ``row_scales``. ``passes`` is the
same where an iterate is a pass through batches, ``curved`` of any other loss: on
``curved_run``, ``curved_tangents`` and ``gradient_points``.
"""
