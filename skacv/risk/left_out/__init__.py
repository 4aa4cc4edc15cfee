"""Rows and folds left out along a run: predictions of every iterate for unseen rows.

``methods`` leaves out single rows by one of four methods, chosen by their requirements
and their ``cost``. ``spectral``: linear updates, all rows by one decomposition.
``replicas``: any update, any loss, any set of rows, folds for example, by fits of their
own. ``row_replicas``: on few columns, beside the recorded run; ``screened`` for updates
with a prox and the squared error; ``linearised`` for curved losses. All but the last
are exact.
"""
