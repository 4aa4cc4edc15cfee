"""Columns of texts: what looks like one, and its components by scikit-learn's parts."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skacv import TableEncoder
from skacv.tables import texts as module

VOCABULARY = {
    "English": "the coat is a bit too small but warm and very soft for its price I "
    "love this colour while my sister would rather return it because of the sleeves",
    "German": "der Mantel ist etwas zu klein aber warm und sehr weich für diesen "
    "Preis ich würde ihn trotzdem wegen der schönen Farbe meiner Schwester empfehlen",
    "Russian": "это пальто немного мало но тёплое и очень мягкое за свою цену я люблю "
    "этот цвет хотя моя сестра вернула бы его из за рукавов",
}


def sentences(rng, n_rows=80, language="English", n_words=(5, 15)):
    """Sentences of random words, all of which differ."""
    words = VOCABULARY[language].split()
    return [
        " ".join(rng.choice(words, rng.integers(*n_words))) + f" ({place})."
        for place in range(n_rows)
    ]


def by_hand(texts, n_components=30, **settings):
    """The components of texts, and the two transformers."""
    of_parts = {"analyzer": "char_wb", "ngram_range": (3, 4)}
    settings = settings or of_parts
    vectorizer = TfidfVectorizer(
        min_df=2, max_features=20_000, sublinear_tf=True, **settings
    )
    svd = TruncatedSVD(n_components, algorithm="arpack", random_state=0)
    components = svd.fit_transform(vectorizer.fit_transform(texts))
    return components, vectorizer, svd


# ------------------------------------------------------------------- the rule


@pytest.mark.parametrize("language", VOCABULARY)
def test_sentences_are_texts(language, rng):
    X = pd.DataFrame({"review": sentences(rng, language=language), "size": range(80)})
    encoder = TableEncoder("codes").fit(X)
    assert encoder.kinds_ == {"review": "text", "size": "number"}
    assert "review" not in encoder.categories_
    assert not encoder.dropped_


def of_row(form, n_rows=60):
    """A string for each row, with two numbers that depend on it."""
    return [form.format(row, 7919 * row % 100_000) for row in range(n_rows)]


NO_SENTENCES = {
    "names": of_row("Braund, Mr. Owen Harris {0}"),
    "identifiers": of_row("patient {0}"),
    "mail": of_row("anna.maria{0}@example.org"),
    "postcodes": of_row("SW{0:02} {1:05}"),
    "universal identifiers": of_row("550e8400-e29b-41d4-a716-{1:012}"),
    "bank accounts": of_row("DE89 3704 0044 0532 0130 {0:02}"),
    "hexadecimal": of_row("0a 1b 2c 3d 4e 5f {0:02x}"),
    "telephones": of_row("+49 (30) 12 34 56 {0:02}"),
    "links": of_row("https://example.org/a/b/c/d/{0}?e=f&g=h"),
    "titles": of_row("Senior police officer {0}"),
}


@pytest.mark.parametrize("what", NO_SENTENCES)
def test_other_strings_are_no_texts(what):
    X = pd.DataFrame({"a": NO_SENTENCES[what], "size": range(60)})
    encoder = TableEncoder("codes").fit(X)
    assert encoder.kinds_ == {"size": "number"}
    assert encoder.dropped_ == {"a": "no text occurs twice"}


def test_sentences_that_repeat_are_categories(rng):
    twice, thrice = (n * sentences(rng, 40) for n in (2, 3))
    assert TableEncoder().fit(pd.DataFrame({"a": twice})).kinds_ == {"a": "text"}
    assert TableEncoder().fit(pd.DataFrame({"a": thrice})).kinds_ == {"a": "category"}


@pytest.mark.parametrize("repeat", [1, 2])
def test_declared_categories_are_never_texts(repeat, rng):
    levels = sentences(rng, 40) * repeat
    X = pd.DataFrame({"a": pd.Categorical(levels), "size": range(len(levels))})
    polars = pl.DataFrame({"a": levels, "size": X["size"].to_numpy()})
    polars = polars.with_columns(pl.col("a").cast(pl.Categorical))
    for frame in (X, polars):
        encoder = TableEncoder().fit(frame)
        assert encoder.kinds_.get("a", "dropped") == ["dropped", "category"][repeat - 1]


def test_missing_texts_do_not_count_in_the_rule(rng):
    texts = [*sentences(rng, 20), *[None] * 60]
    X = pd.DataFrame({"a": texts, "size": range(80)})
    assert TableEncoder().fit(X).kinds_["a"] == "text"


def test_texts_without_a_common_term_are_dropped():
    texts = ["ab cd ef gh ij kl", "mn op qr st uv wx"]
    X = pd.DataFrame({"a": texts, "size": [1.0, 2.0]})
    assert TableEncoder().fit(X).dropped_ == {"a": "no text occurs twice"}


# ----------------------------------------------------------------- components


def test_components_are_those_of_scikit_learn(rng):
    texts = [*sentences(rng), "", *sentences(rng, 10, "German")]
    X = pd.DataFrame({"size": range(91), "review": texts, "note": texts[::-1]})
    encoder = TableEncoder("codes")
    codes = encoder.fit_transform(X)
    expected, *fitted = by_hand(texts)
    np.testing.assert_allclose(codes[:, 1:31], expected, atol=1e-12)
    names = encoder.get_feature_names_out().tolist()
    assert names[:3] == ["size", "review_0", "review_1"]
    assert names[30:] == ["review_29", *[f"note_{k}" for k in range(30)]]
    # One-hot columns have them, too, and other rows.
    new = pd.DataFrame({"size": [1, 2], "review": ["a warm coat", "?"], "note": "x"})
    vectorizer, svd = fitted
    expected = svd.transform(vectorizer.transform(["a warm coat", ""]))
    for one in (encoder, TableEncoder().fit(X)):
        np.testing.assert_allclose(one.transform(new)[:, 1:31], expected, atol=1e-12)
    codes, tf_idf = encoder.codes_and_tf_idf(X)
    n_terms = len(vectorizer.vocabulary_)
    expected = vectorizer.transform(texts).toarray()
    np.testing.assert_allclose(tf_idf[:, :n_terms].toarray(), expected, atol=1e-15)
    terms = encoder.term_names()
    assert len(terms) == tf_idf.shape[1]
    assert "review: coa" in terms[:n_terms]
    assert "note: coa" in terms[n_terms:]


def test_many_characters_are_counted_by_words(rng, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHARACTERS", 1000)
    texts = sentences(rng)
    codes = TableEncoder("codes").fit_transform(pd.DataFrame({"a": texts}))
    n_words = len(set(VOCABULARY["English"].lower().split()) - {"a", "i"})
    expected, *_ = by_hand(texts, n_words - 1, analyzer="word")
    np.testing.assert_allclose(codes, expected, atol=1e-12)


def test_few_texts_have_fewer_components(rng):
    X = np.array([sentences(rng, 5)], dtype=object).T
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == [f"x0_{k}" for k in range(4)]
    assert np.isfinite(encoder.transform(X)).all()


def test_every_frame_has_the_same_components(rng):
    texts = sentences(rng)
    texts[3], texts[7] = None, "NA"
    X = pd.DataFrame({"size": np.arange(80.0), "review": texts})
    expected = TableEncoder("codes").fit_transform(X)
    assert not expected[[3, 7], 1:].any()
    frames = {
        "string": X.astype({"review": "string"}),
        "array": X.to_numpy(dtype=object),
        "polars": pl.DataFrame({"size": np.arange(80.0), "review": texts}),
    }
    for name, frame in frames.items():
        encoder = TableEncoder("codes").fit(frame)
        np.testing.assert_array_equal(encoder.transform(frame), expected, err_msg=name)


def test_new_rows_may_lack_texts_but_not_hold_numbers(rng):
    X = pd.DataFrame({"size": np.arange(80.0), "review": sentences(rng)})
    encoder = TableEncoder("codes").fit(X)
    for nothing in ([None, None], [np.nan, np.nan], ["", "NA"], ["§§§", "☃"]):
        new = pd.DataFrame({"size": [1.0, 2.0], "review": nothing})
        assert not encoder.transform(new)[:, 1:].any()
    new["review"] = pd.Categorical(X["review"][:2])
    np.testing.assert_array_equal(
        encoder.transform(new), encoder.transform(X[:2]) + [[1] + [0] * 30] * 2
    )
    with pytest.raises(ValueError, match="'review' of X contains numbers, but contai"):
        encoder.transform(new.assign(review=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"Columns are missing in X: \['review'\]"):
        encoder.transform(new[["size"]])


# -------------------------------------------------------------------- weights


def test_rows_of_weight_zero_are_none(rng):
    X = pd.DataFrame({"size": np.arange(80.0), "review": sentences(rng)})
    weights = np.r_[np.zeros(20), np.ones(60)]
    X.loc[:9, "review"] = "nobody reads this sentence about unknown zebras"
    fitted = TableEncoder("codes").fit(X, sample_weight=weights)
    expected = TableEncoder("codes").fit(X[20:])
    np.testing.assert_array_equal(fitted.transform(X), expected.transform(X))
    codes = TableEncoder("codes").fit_transform(X, sample_weight=weights)
    np.testing.assert_array_equal(codes, expected.transform(X))


def test_weights_are_copies_of_rows(rng):
    # Words that only the copies of a row have are terms.
    texts = [*sentences(rng, 79), "zebras graze where giraffes browse"]
    X = pd.DataFrame({"size": np.arange(80.0), "review": texts})
    copies = np.r_[np.ones(60, int), 2 * np.ones(20, int)]
    fitted = TableEncoder("codes").fit(X, sample_weight=copies / 3)
    repeated = TableEncoder("codes").fit(X.loc[np.repeat(np.arange(80), copies)])
    assert repeated.term_names() == fitted.term_names()
    assert "review: zeb" in fitted.term_names()
    found, expected = (one.codes_and_tf_idf(X) for one in (fitted, repeated))
    np.testing.assert_allclose(found[1].toarray(), expected[1].toarray(), atol=1e-12)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9)


# ------------------------------------------------------- as any other estimator


def test_pickles_clones_and_frames(rng):
    X = pd.DataFrame({"size": np.arange(80.0), "review": sentences(rng)})
    encoder = TableEncoder("codes").fit(X)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(X), encoder.transform(X))
    np.testing.assert_array_equal(
        clone(encoder).fit(X).transform(X), encoder.transform(X)
    )
    for categories in ("codes", "onehot"):
        frame = TableEncoder(categories).set_output(transform="pandas").fit_transform(X)
        assert frame.columns[1] == "review_0"
        assert {str(dtype) for dtype in frame.dtypes} == {"float64"}


def test_in_pipelines_and_grids(rng):
    X = pd.DataFrame({"review": sentences(rng)})
    y = X["review"].str.count("coat") + 0.1 * rng.standard_normal(80)
    grid = GridSearchCV(
        make_pipeline(TableEncoder(), Ridge()), {"ridge__alpha": [1e-3, 1.0]}, cv=3
    )
    assert grid.fit(X, y).best_score_ > 0.3
