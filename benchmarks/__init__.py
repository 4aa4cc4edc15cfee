"""Speed and memory against opponents, and accuracy over repeats."""
