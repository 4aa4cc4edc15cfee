"""Estimates of the risk of every iterate, from a recorded run.

Two ways to read: the memory matrix, and rows or folds left out along the run. What to
read first, reader by reader:

==============================  ======================  ============================
entry point                     exactness               what it stands on
==============================  ======================  ============================
``memory.memory_matrix``        an estimate; traces     ``tangents``, ``passes`` or
                                exact or probed         ``curved_run``
``left_out.methods``            one of the next four,   ``cost``
                                by what they require
``left_out.spectral``           exact, linear updates   ``eigenbasis``
``left_out.screened``           exact, with a prox      ``row_replicas``
``left_out.replicas``           exact, any loss, any
                                rows
``left_out.linearised``         linearised, curved      ``row_replicas``
                                losses
``intervals``                   of held-out residuals
==============================  ======================  ============================

All of them are functions of a problem and its run, and refuse a run that they cannot
read (``reader.Unreadable``). ``held_out_rows.LeaveOutRule`` says what a fit without
some rows would be.
"""
