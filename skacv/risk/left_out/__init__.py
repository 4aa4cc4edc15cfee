"""Rows and folds left out along a run: what every iterate predicts for rows unseen.

``choice`` is where to begin: it leaves out ``rows`` by one of four ``methods``, by what
they require and by ``costs``. ``spectral``: linear updates, all rows by one
decomposition. ``replicas``: any update, any loss, any set of rows, by fits of their
own. ``row_replicas``: on few columns, beside the ``replayed`` run; ``screened`` for
updates with a prox and the squared error, by a ``working_gram``; ``linearised`` for
curved losses, with a ``correction``. All but the last are exact.
"""
