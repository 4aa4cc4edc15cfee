"""Read a recorded run: what every iterate would cost on rows that it has not seen.

Three readers: the memory matrix, rows or folds left out along the run, and
leave-one-out of a converged model. What to read first, reader by reader:

========================  ======================  =================================
entry point               exactness               what it stands on
========================  ======================  =================================
``memory_matrix``         an estimate; traces     ``modes``, ``tangents``,
                          exact or probed         ``traces``; ``row_norms`` and
                                                  ``row_scales`` for uneven rows
``passes``                the same in batches,    ``labels``
                          from random labels
``held_out``              chooses, by ``costs``,
                          one of the next four
``spectral``              exact, linear updates   ``eigenbasis``
``row_lockstep``          exact, with a prox      ``working_columns``
``lockstep``              exact, any loss, any
                          rows
``iacv``                  linearised, curved      ``iacv_moments``,
                          losses                  ``iacv_correction``
``intervals``             of held-out residuals
``converged``             one Newton step,        ``quadratic``, ``randomized``,
                          exact for ridge         ``converged_hinge``
========================  ======================  =================================
"""
