"""Rows and folds left out along a run: what every iterate predicts for rows unseen.

``choice`` is where to begin: it leaves out ``rows`` by one of four ``methods``, by what
they require and by ``costs``. ``spectral``: linear updates, all rows by one
decomposition. ``screened``: updates with a prox, on ``working_columns``. ``replicas``:
any update, any loss, any set of rows, by fits of their own. ``linearised``: curved
losses, at the recorded ``moments`` of the run, with a ``correction``. All but the last
are exact.
"""
