"""The memory matrix of Bellec & Tan (2024): the risk of every iterate, no row left out.

``memory_matrix`` is the reader, of the squared error where updates take all rows. Runs
where every iterate is the same linear pass through batches are read by ``passes``, any
loss by ``curved_run``, which stands on ``curved_tangents`` and ``gradient_points``. All
work on temporal modes of the residuals or slopes (``modes``), with probes of how shocks
move later iterates (``tangents``), and, for rows of uneven norm, on ``row_scales``.
"""
