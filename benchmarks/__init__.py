"""Speed and memory against opponents, and accuracy over repeats.

``framework.py`` has what all share: times of both sides in one process, rows of their
ratios, and the files that are written. Every other file asks the question that its
first line says:

* ``speed``: rows of ``python -m benchmarks`` (``make bench``);
* ``studies``: tables of ``python -m benchmarks.studies`` (``make studies``);
* ``peers.py``, ``unseen``, ``any_optimiser.py``, ``dask_rounds.py``, ``device.py`` and
  ``large.py``: commands of their own, since they need other packages, data or machines.

``data.py`` draws data, ``real_data.py`` has those that scikit-learn ships;
``comparison.py`` and ``examples.py`` write tables of what has been measured.
"""
