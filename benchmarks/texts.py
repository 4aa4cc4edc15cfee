"""Tables with a column of texts: the default with and without it: ``make bench-texts``.

Three tables that are no part of the project: files of repositories, of which CLONES has
clones as ``CLONES/owner/name``. "disasters" has tweets with a keyword and a place, and
whether they are of a disaster; "airlines" tweets about six airlines, and whether they
are negative, neutral or positive; "movies" what is known of a thousand films, with a
description and a list of actors, and their ratings. None was looked at while the
encoding of texts was chosen, on three others: messages, reviews of a loudspeaker, and
of coffee.

Random splits, a quarter for the test. Log loss of the test rows for classes, smaller is
better, or R^2 for "movies", greater is better; and mean processor seconds of one
thread. "ours" are the default models. "no texts" are the same without the texts, and
"as category" with texts declared as categories, which is what the default made of them
before it knew texts. "linear" is a pipeline by hand: words by TfidfVectorizer, numbers
scaled, categories one-hot, then LogisticRegressionCV, or RidgeCV. In "trees"
HistGradientBoosting, which stops early, has 30 components of these words beside numbers
and codes of categories. "weight" is that of the linear member on tf-idf in the blend of
the default.
"""

import io
import subprocess
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from .framework import arguments, header, heading, line

# Each table: repository, commit, file, target, texts, and columns that are left out: of
# rows, and what people wrote down after they had decided on the target.
TABLES = {
    "disasters": (
        "J-Dymond/COMP6208",
        "2043b33bbaef363cee4ef444ba74dc58a69154b9",
        "nlp-getting-started/train.csv",
        "target",
        ["text"],
        ["id"],
    ),
    "airlines": (
        "Ramlah0/Twitter-US-Airline-Sentiment-Analysis",
        "b485e56d824c0c0c0ed573932a98db309523bc75",
        "Tweets.csv",
        "airline_sentiment",
        ["text"],
        ["tweet_id", "negativereason"],
    ),
    "movies": (
        "bethlockwood/IMDB",
        "bd7933fd118535195e26bc31998027bf23c44011",
        "data/IMDB-Movie-Data.csv",
        "Rating",
        ["Description", "Actors"],
        [],
    ),
}
REGRESSIONS = {"movies"}


def read(clones, name):
    """The rows and targets of a table, and the names of its texts."""
    repository, commit, file, target, texts, others = TABLES[name]
    command = ["git", "-C", clones / repository, "show", f"{commit}:{file}"]
    content = subprocess.run(command, check=True, capture_output=True).stdout
    table = pd.read_csv(io.BytesIO(content)).dropna(subset=[target])
    y = table[target].to_numpy(float if name in REGRESSIONS else str)
    return table.drop(columns=[target, *others]).reset_index(drop=True), y, texts


def is_of_numbers(y):
    """Whether targets are numbers."""
    return y.dtype.kind == "f"


def ours(X, y, texts):
    """The default models, blended."""
    kind = SelfStoppingRegressor if is_of_numbers(y) else SelfStoppingClassifier
    return kind(random_state=0).fit(X, y)


def no_texts(X, y, texts):
    """The default models without the texts, which they do not ask for in new rows."""
    return ours(X.drop(columns=texts), y, texts)


def as_category(X, y, texts):
    """The default models with texts declared as categories."""
    return ours(X.astype(dict.fromkeys(texts, "category")), y, texts)


def columns(X, texts, of_texts, of_categories):
    """Numbers, filled and scaled, categories and texts, by a transformer of each."""
    numbers = X.select_dtypes("number").columns
    categories = X.columns.drop([*numbers, *texts])
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    parts = [(clone(of_texts), text) for text in texts]
    return make_column_transformer(
        (scaled, numbers), (of_categories, categories), *parts
    )


def linear(X, y, texts):
    """Words and a linear model, tuned."""
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    if is_of_numbers(y):
        model = RidgeCV(np.geomspace(1e-2, 1e2, 13))
    else:
        model = LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000)
    return make_pipeline(columns(X, texts, TfidfVectorizer(), levels), model).fit(X, y)


def trees(X, y, texts):
    """Components of words, and boosted trees."""
    components = make_pipeline(TfidfVectorizer(), TruncatedSVD(30, random_state=0))
    levels = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=3
    )
    kind = HistGradientBoostingClassifier
    if is_of_numbers(y):
        kind = HistGradientBoostingRegressor
    model = kind(early_stopping=True, max_iter=1000, random_state=0)
    return make_pipeline(columns(X, texts, components, levels), model).fit(X, y)


MODELS = {
    "ours": ours,
    "no texts": no_texts,
    "as category": as_category,
    "linear": linear,
    "trees": trees,
}


def score_of(model, X, y):
    """R^2 of numbers, or the log loss of classes."""
    if is_of_numbers(y):
        return r2_score(y, model.predict(X))
    return log_loss(y, model.predict_proba(X))


def compared(X, y, texts, seed):
    """Of one split: scores and seconds of all models, and the weight of tf-idf."""
    X, new, y, truth = train_test_split(X, y, test_size=0.25, random_state=seed)
    scores, seconds, weight = [], [], None
    for fit in MODELS.values():
        begun = process_time()
        with warnings.catch_warnings(action="ignore"):
            model = fit(X, y, texts)
        seconds.append(process_time() - begun)
        scores.append(score_of(model, new, truth))
        weight = model.weights_["tf-idf"] if fit is ours else weight
    return scores, seconds, weight


def lines_of(name, clones, n_splits):
    """Lines of a table: the scores of every split, their means, and seconds."""
    X, y, texts = read(clones, name)
    X[texts] = X[texts].fillna("")
    splits = [compared(X, y, texts, seed) for seed in range(n_splits)]
    scores, seconds, weights = map(np.array, zip(*splits))
    for seed, (values, weight) in enumerate(zip(scores, weights)):
        cells = [f"{value:.3f}" for value in values]
        yield line(name, f"split {seed}", *cells, f"{weight:.2f}")
    cells = [f"{value:.3f}" for value in scores.mean(axis=0)]
    yield line(name, "mean", *cells, f"{weights.mean():.2f}")
    yield line(name, "seconds", *[f"{value:.0f}" for value in seconds.mean(axis=0)], "")


if __name__ == "__main__":
    args = arguments(__doc__, TABLES, splits=3, clones="clones")
    said = __doc__.partition("\n\n")[2].strip()
    lines = [
        "# Tables with a column of texts\n",
        f"`make bench-texts` ({heading(())}), {args.splits} splits\n",
        f"{said}\n",
        *header("table", "", *MODELS, "weight"),
    ]
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for name in args.names or TABLES:
            for one in lines_of(name, Path(args.clones), args.splits):
                lines.append(one)
                print(one, flush=True)
    if args.output:
        args.output.write_text("\n".join([*lines, ""]))
