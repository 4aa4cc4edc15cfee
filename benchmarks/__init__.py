"""Speed and memory against opponents, and accuracy over repeats.

``framework.py`` has what all share: times of both sides in one process, rows of their
ratios, studies by their names, and the files that are written. Every other file asks
the question that its first line says; each is a command, which the Makefile names.
``data.py`` draws data, ``real_data.py`` has those that scikit-learn ships, and
``tables.py`` says where others are from.
"""
