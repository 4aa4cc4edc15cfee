"""The memory matrix of Bellec & Tan (2024): the risk of every iterate, no row left out.

``memory_matrix`` is the reader. It has a backend for each kind of run: ``squared``,
whose updates take all rows; ``passes``, where every iterate is the same linear pass
through batches; and ``curved_run``, of any loss, which stands on ``curved_tangents``,
``signed_rows`` and ``gradient_points``. All give an ``estimate``, by temporal modes
(``modes``) of the residuals or slopes, probes (``traces``) of how shocks move
later iterates (``tangents``), and, for rows of uneven norm, by
``row_scales``.
"""
