"""Members of portfolios that several files share."""

from sklearn.model_selection import KFold

from skacv import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso

# Those that are taken where nothing is set.
FOLDS = KFold(5, shuffle=True, random_state=0)


def members():
    return [
        ("lasso", TrajectoryLasso("path", max_iter=10)),
        ("net", TrajectoryElasticNet(0.1, max_iter=50)),
        ("ridge", IterativeRidge(0.0, max_iter=60)),
    ]
