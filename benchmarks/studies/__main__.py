"""How accurate are estimates over repeats, beside the truth? ``make studies``.

Each study prints a table; ``--output`` puts it in its section of a file, which is kept
under ``benchmarks/results``.
"""

import warnings
from importlib.util import find_spec

from ..framework import Section, arguments, write_sections
from ..speed.lasso import alpha_and_iteration
from ..unseen.tables import FOLDER
from . import kernel_figures
from .approximate_loo import converged
from .best_score import kernel_scores, optimism
from .coefficient_designs import coefficients
from .coefficient_intervals import coverage, nulls
from .corrected_scores import corrected_scores
from .costs import costs
from .criteria import criteria, many_rows, regret
from .curved_leave_one_out import curved, published_levels
from .curved_memory import curved_memory
from .default_call import default_probabilities, defaults
from .endings import endings
from .extra_trees import leaves_of_extra_trees
from .feature_machines import feature_machine_scores, feature_machines
from .kernel_defaults import kernel_defaults
from .kernel_rows import kernel_rows
from .later_gains import gains_of_groups, later_gains
from .loo_rates import loo_rates
from .model_size import model_size
from .patience import patience
from .prediction_intervals import interval_tables, intervals
from .prediction_sets import prediction_sets
from .races import means_of_copies, races
from .random_labels import random_labels
from .risk_estimate import designs, few_rows, probes, published_means, published_page
from .stopping_rules import stopping_rules
from .summary_digits import summary_digits
from .time_limit import HAS_FLAML, time_limits
from .time_splits import time_splits

STUDIES = {
    "published-page": published_page,
    "published-means": published_means,
    "designs": designs,
    "few-rows": few_rows,
    "probes": probes,
    "alpha-and-iteration": alpha_and_iteration,
    "criteria": criteria,
    "regret": regret,
    "many-rows": many_rows,
    "costs": costs,
    "patience": patience,
    "defaults": defaults,
    "default-probabilities": default_probabilities,
    "endings": endings,
    "optimism": optimism,
    "corrected-scores": corrected_scores,
    "model-size": model_size,
    "intervals": intervals,
    "interval-tables": interval_tables,
    "prediction-sets": prediction_sets,
    "curved": curved,
    "curved-memory": curved_memory,
    "loo-rates": loo_rates,
    "coverage": coverage,
    "nulls": nulls,
    "coefficients": coefficients,
    "published-levels": published_levels,
    "converged": converged,
    "reach": kernel_figures.computational_reach,
    "batch-sizes": kernel_figures.batch_sizes,
    "norms": kernel_figures.norms,
    "double-descent": kernel_figures.double_descent,
    "noisy-digits": kernel_figures.noisy_digits,
    "noisy-probabilities": kernel_figures.noisy_probabilities,
    "random-labels": random_labels,
    "kernel-defaults": kernel_defaults,
    "kernel-rows": kernel_rows,
    "feature-machines": feature_machines,
    "feature-machine-scores": feature_machine_scores,
    "stopping-rules": stopping_rules,
    "later-gains": later_gains,
    "gains-of-groups": gains_of_groups,
    "races": races,
    "means-of-copies": means_of_copies,
    "summary-digits": summary_digits,
    "kernel-scores": kernel_scores,
    "time-limit": time_limits,
    "time-splits": time_splits,
    "leaves-of-extra-trees": leaves_of_extra_trees,
}
# Studies of tables that are no part of the project, and beside another package, run
# where these are.
HAS_TABLES, HAS_MAPIE = FOLDER.exists(), find_spec("mapie") is not None
RUNS = {
    "kernel-scores": HAS_TABLES,
    "later-gains": HAS_TABLES,
    "races": HAS_TABLES,
    "means-of-copies": HAS_TABLES,
    "interval-tables": HAS_TABLES and HAS_MAPIE,
    "prediction-sets": HAS_MAPIE,
    "time-limit": HAS_FLAML,
}
OF_ALL = [name for name in STUDIES if RUNS.get(name, True)]


def printed(name):
    """Print a study as it goes on."""
    title, *paragraphs = STUDIES[name].__doc__.split("\n\n")
    lines = [*(" ".join(paragraph.split()) for paragraph in paragraphs), ""]
    print(f"## {title}\n", *lines, sep="\n", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables show what runs warn of
        for line in STUDIES[name]():
            lines.append(line)
            print(line, flush=True)
    print()
    text = "\n".join(lines)
    return Section(title, f"python -m benchmarks.studies {name}", text)


if __name__ == "__main__":
    args = arguments(__doc__, STUDIES)
    results = [printed(name) for name in args.names or OF_ALL]
    if args.output:
        write_sections(args.output, "Accuracy over repeats", results)
