"""Where do boosted trees of the default end, and where by patience alone?"""

import itertools
from time import process_time

import numpy as np
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from ..framework import header, line

# Under a limit of hours no run ends before patience does.
MODELS = {"patience": {"time_limit": 10 * 3600.0}, "now": {}}


def every_row(n_levels):
    """All combinations of categories, as a table of numbers from 1."""
    return 1 + np.array(list(itertools.product(*map(range, n_levels))))


def monks(number):
    """Thrun et al. (1991), all 432 robots; the third with 5% of the labels wrong."""
    X = every_row((3, 3, 2, 3, 4, 2))
    if number == 1:
        y = (X[:, 0] == X[:, 1]) | (X[:, 4] == 1)
    elif number == 2:
        y = (X == 1).sum(axis=1) == 2
    else:
        y = ((X[:, 4] == 3) & (X[:, 3] == 1)) | ((X[:, 4] != 4) & (X[:, 1] != 3))
        y ^= np.random.default_rng(0).uniform(size=len(y)) < 0.05
    return X, y.astype(int)


def balance_scale():
    """Siegler (1976): to which side a balance tips, for weights and distances to 5."""
    X = every_row((5, 5, 5, 5))
    return X, np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3])


def tic_tac_toe():
    """Aha (1991): ends of all games, and whether the first player has won."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8)]
    lines += [(0, 4, 8), (2, 4, 6)]
    wins, seen = {}, set()

    def play(board, player):
        if board in seen:
            return
        seen.add(board)
        won = {board[a] for a, b, c in lines if board[a] == board[b] == board[c]} - {0}
        if won or 0 not in board:
            wins[board] = int(1 in won)
            return
        for square in np.flatnonzero(np.equal(board, 0)):
            play((*board[:square], player, *board[square + 1 :]), 3 - player)

    play((0,) * 9, 1)
    boards = sorted(wins)
    return np.array(boards), np.array([wins[board] for board in boards])


def control_charts():
    """Alcock and Manolopoulos (1999): six patterns of sixty steps, 100 of each."""
    rng, t, rows = np.random.default_rng(0), np.arange(60), []
    for pattern in np.repeat(range(6), 100):
        sign = 1 if pattern % 2 == 0 else -1
        chart = 30 + 2 * rng.uniform(-3, 3, 60)
        if pattern == 1:
            chart += rng.uniform(10, 15) * np.sin(2 * np.pi * t / rng.uniform(10, 15))
        elif pattern in (2, 3):
            chart += sign * rng.uniform(0.2, 0.5) * t
        elif pattern in (4, 5):
            chart += sign * rng.uniform(7.5, 20) * (t >= rng.uniform(20, 40))
        rows.append(chart)
    return np.array(rows), np.repeat(range(6), 100)


def gaussian_classes(n_rows, n_columns, n_classes, distance):
    """Classes of Gaussian rows, whose means have this distance in every column."""
    rng = np.random.default_rng(0)
    y = rng.choice(n_classes, n_rows)
    means = distance * rng.standard_normal((n_classes, n_columns))
    return means[y] + rng.standard_normal((n_rows, n_columns)), y


def informative(**options):
    return datasets.make_classification(random_state=0, **options)


def friedman(number, n_rows, noise):
    make = getattr(datasets, f"make_friedman{number}")
    return make(n_samples=n_rows, noise=noise, random_state=0)


SEPARABLE = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "monks 1": lambda: monks(1),
    "monks 2": lambda: monks(2),
    "monks 3": lambda: monks(3),
    "balance scale": balance_scale,
    "tic-tac-toe": tic_tac_toe,
    "control charts": control_charts,
    "93 rows, 79 columns": lambda: gaussian_classes(93, 79, 3, 0.8),
    "366 rows, 34 columns": lambda: gaussian_classes(366, 34, 6, 0.9),
    "digits": lambda: datasets.load_digits(return_X_y=True),
}
ORDINARY = {
    "overlapping classes": lambda: gaussian_classes(800, 6, 3, 0.6),
    "10% wrong labels": lambda: informative(n_samples=800, n_informative=6, flip_y=0.1),
    "30% wrong labels": lambda: informative(n_samples=600, n_informative=5, flip_y=0.3),
    "four classes": lambda: informative(n_samples=1000, n_informative=8, n_classes=4),
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman 1": lambda: friedman(1, 500, 1.0),
    "friedman 1, no noise": lambda: friedman(1, 800, 0.0),
    "friedman 2": lambda: friedman(2, 500, 50.0),
    "friedman 3": lambda: friedman(3, 400, 0.1),
}


def readings(model, X, y):
    """Processor seconds, the loss on a quarter of the rows, and stages grown."""
    of_classes = is_classifier(model)
    X, X_new, y, y_new = train_test_split(
        X, y, random_state=0, stratify=y if of_classes else None
    )
    start = process_time()
    model.fit(X, y)
    seconds = process_time() - start
    if of_classes:
        loss = log_loss(y_new, model.predict_proba(X_new), labels=model.classes_)
    else:
        loss = mean_squared_error(y_new, model.predict(X_new))
    return seconds, loss, len(model.member_paths_["boosted trees"]) - 1


def endings():
    """Where boosted trees of the default end, and what that costs.

    Log loss of separable classes falls for ever, and patience counts any improvement.
    The default ends its boosted trees where what they could still bring to the blend is
    small beside its standard error. On the left the runs that patience alone ends.
    The loss, on a quarter of the rows, is the log loss, or the squared error; both fits
    have the same rows. Seconds are those of the processor.
    """
    columns = "seconds", "stages", "loss"
    yield from header(
        "table", *(f"{column}, {name}" for column in columns for name in MODELS)
    )
    for title, tables in (("separable", SEPARABLE), ("others", ORDINARY)):
        ratios = []
        for table, load in tables.items():
            X, y = load()
            kind = SelfStoppingClassifier
            if np.issubdtype(np.asarray(y).dtype, np.floating):
                kind = SelfStoppingRegressor
            results = []
            for options in MODELS.values():
                model = kind(random_state=0, **options)
                results.append(readings(model, X, y))
            (seconds, losses, stages) = np.transpose(results)
            ratios.append(losses[1] / losses[0])
            yield line(
                table,
                *(f"{number:.1f}" for number in seconds),
                *(f"{number:.0f}" for number in stages),
                *(f"{loss:.4g}" for loss in losses),
            )
        mean = f"{np.mean(ratios):.4f}"
        yield line(f"mean ratio of losses, {title}", *[""] * 5, mean)
    yield ""
