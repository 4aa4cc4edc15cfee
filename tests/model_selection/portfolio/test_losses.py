"""Default models for counts and amounts: one loss with a log link for all."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import mean_tweedie_deviance

from skacv import RiskPathDisplay, SelfStoppingRegressor, Staged, TrajectoryLasso
from skacv.optim.losses import Gamma, NegativeBinomial, Poisson, SquaredError, Tweedie
from tests.linear_model.offset_cases import drawn

pytestmark = pytest.mark.usefixtures("few_trees")
LOSSES = {
    "poisson": Poisson(),
    "gamma": Gamma(),
    "tweedie": Tweedie(1.5),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_all_members_are_judged_and_blended_by_the_loss(kind):
    X, y, _ = drawn(kind)
    model = SelfStoppingRegressor(loss=kind, random_state=0).fit(X, y)
    assert set(model.members_) == {"lasso", "ridge", "boosted trees", "extra trees"}
    assert not any(model.results_["left_out"])
    for member in model.members_.values():
        assert member.record_.loss == LOSSES[kind]
        assert (member.predict(X) > 0).all()
    # The score is half the deviance of the blend on the rows held out.
    held_out = model.held_out_prediction_
    deviance = mean_tweedie_deviance(y, held_out, power=LOSSES[kind].power)
    assert model.best_score_ == pytest.approx(deviance / 2)
    assert model.best_score_ < min(path[0] for path in model.member_paths_.values())
    assert set(model.results_["loss"]) == {LOSSES[kind].name}


def test_a_loss_of_another_power():
    X, y, _ = drawn("tweedie")
    model = SelfStoppingRegressor(loss=Tweedie(1.7), random_state=0).fit(X, y)
    for member in model.members_.values():
        assert member.record_.loss == Tweedie(1.7)
    same = SelfStoppingRegressor(loss=Tweedie(1.5), random_state=0).fit(X, y)
    by_name = SelfStoppingRegressor(loss="tweedie", random_state=0).fit(X, y)
    np.testing.assert_array_equal(same.predict(X), by_name.predict(X))
    squared = SelfStoppingRegressor(loss=SquaredError(), random_state=0).fit(X, y)
    default = SelfStoppingRegressor(random_state=0).fit(X, y)
    np.testing.assert_array_equal(squared.predict(X), default.predict(X))


def test_forests_of_rare_counts_predict_no_zero(rng):
    X = rng.standard_normal((400, 3))
    y = rng.poisson(0.05, 400).astype(float)
    model = SelfStoppingRegressor(loss="poisson", random_state=0).fit(X, y)
    assert np.isfinite(model.member_paths_["extra trees"]).all()
    assert (model.members_["extra trees"].predict(X) > 0).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_raw_tables_with_exposures(kind):
    X, y, offset = drawn(kind)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["word"] = np.where(X[:, 0] > 0, "yes", "no")
    exposure, power = np.exp(offset), LOSSES[kind].power
    model = SelfStoppingRegressor(loss=kind, random_state=0)
    found = clone(model).fit(table, y, offset=offset)
    weights = exposure ** (2 - power)
    expected = clone(model).fit(table, y / exposure, sample_weight=weights)
    np.testing.assert_allclose(
        found.predict(table, offset=offset), expected.predict(table) * exposure
    )
    # Ends of intervals follow the spread of y: its mean to half the power.
    alike = pd.concat([table[:1]] * 2)
    offsets = np.log([1.0, 4.0])
    ends = found.predict_interval(alike, 0.5, method="cv", offset=offsets)
    width = ends[:, 1] - found.predict(alike, offset=offsets)
    assert width[1] / width[0] == pytest.approx(4.0 ** (power / 2))
    copied = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(
        copied.predict(table, offset=offset), found.predict(table, offset=offset)
    )


def test_figures_and_tables_name_the_loss():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y, _ = drawn("poisson")
    model = SelfStoppingRegressor(loss="poisson", random_state=0).fit(X, y)
    display = RiskPathDisplay.from_estimator(model)
    assert "half Poisson deviance" in display.ax_.get_ylabel()
    plt.close(display.figure_)
    assert model.leaderboard()["member"].iloc[0] == "blend"


def test_losses_that_default_models_do_not_have():
    X, y, _ = drawn("poisson", 60)
    with pytest.raises(ValueError, match="cannot have the half negative binomial"):
        SelfStoppingRegressor(loss=NegativeBinomial()).fit(X, y)
    with pytest.raises(ValueError, match="loss='poisson' is that of the default"):
        SelfStoppingRegressor(TrajectoryLasso(), loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match="'loss' parameter of SelfStoppingRegressor"):
        SelfStoppingRegressor(loss="absolute").fit(X, y)
    with pytest.raises(ValueError, match="Some values of y are negative"):
        SelfStoppingRegressor(loss="poisson").fit(X, y - 5)


def test_a_judge_is_for_regressors():
    X, y, _ = drawn("poisson", 60)
    model = Staged(HistGradientBoostingClassifier(), judge=Poisson())
    with pytest.raises(ValueError, match="judge is for regressors"):
        model.fit(X, y > 0)
