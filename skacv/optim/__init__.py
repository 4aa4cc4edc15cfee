"""Run an iterative model once and record its trajectory.

``problem.Problem`` is the smooth part of an objective: a ``design``, a target, weights
of the rows, and one of the ``losses``. The rest of the objective is one of the
``penalties``, or of their ``families``. A plan is a list of ``trajectory.Phase``: a
penalty and one of the ``schedules``, which yields ``updates``.
``run.run`` checks the plan (``contracts``), takes its updates by the one loop of
``trajectory``, and returns the record. ``fits`` are the run and its refits on other
rows, side by side.
"""
