"""Columns of texts, such as sentences: tf-idf, and its components."""

import re
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from .._estimator.data.checks import copies_of

# A column of strings holds texts if these have so many words on average, and different
# rows mostly different ones, so that none occurs more than twice on average. Names,
# identifiers and addresses of mail have fewer words.
FEWEST_WORDS, MOST_REPEATED = 5, 2
# A word has two letters in a row and no digit, and is between blanks: groups of digits
# and hexadecimal numbers are no words.
WORD = re.compile(r"(?<!\S)(?=\S*[^\W\d_]{2})[^\s\d]+(?!\S)")
# Texts that are looked at.
N_LOOKED_AT = 1000
# Components of a column; skrub's StringEncoder has as many.
N_COMPONENTS = 30
# Components of singular values below this share of the largest are roundings.
LEAST_SHARE = 1e-8
# Characters of all rows up to which parts of words are counted, three or four
# characters long, and of more whole words. Parts were better than words, and than pairs
# of these, in linear models on three tables, the more the fewer the rows; they take ten
# times as many entries.
MOST_CHARACTERS = 10_000_000
# The terms that are kept, those that are most frequent: a linear model that keeps its
# iterates has a coefficient for each of them at every iterate.
MOST_TERMS = 20_000
PARTS_OF_WORDS = {"analyzer": "char_wb", "ngram_range": (3, 4)}


def are_texts(codes, levels):
    """Whether strings ``levels[codes]`` look like sentences; negative codes miss."""
    n_rows = np.count_nonzero(codes >= 0)
    if len(levels) < 2 or n_rows > MOST_REPEATED * len(levels):
        return False
    looked_at = levels[:: -(-len(levels) // N_LOOKED_AT)]
    n_words = sum(len(WORD.findall(text)) for text in looked_at)
    return n_words >= FEWEST_WORDS * len(looked_at)


@dataclass
class Texts:
    """A column of texts as the first singular components of its tf-idf."""

    vectorizer: TfidfVectorizer
    svd: TruncatedSVD
    # Numbers of the components that are kept.
    parts: tuple
    has_missing = False
    kind = "text"
    levels = None

    @classmethod
    def fit(cls, codes, levels, weights=None):
        """The column of texts ``levels[codes]``, and its tf-idf.

        A missing text, of which the code is negative, is empty. Neither the tf-idf nor
        its components look at y. Rows count once in frequencies, or as often as there
        are copies of them where ``weights`` are such numbers; components are those of
        weighted rows. None is returned where no part of a word is in two texts.

        Shapes: codes, weights (n_samples,); tf-idf (n_samples, n_terms), sparse.
        """
        texts = np.array([*levels, ""], dtype=object)[codes]
        n_characters = sum(map(len, texts))
        by = PARTS_OF_WORDS if n_characters <= MOST_CHARACTERS else {}
        vectorizer = TfidfVectorizer(
            min_df=2, max_features=MOST_TERMS, sublinear_tf=True, **by
        )
        copies = np.ones(len(codes)) if weights is None else copies_of(weights)
        try:
            # It counts no weights: copies of a row twice, and all others once.
            n_times = np.minimum(copies, 2).astype(np.intp)
            vectorizer.fit(np.repeat(texts, n_times))
        except ValueError:  # no term is in two rows
            return None
        tf_idf = vectorizer.transform(texts)
        if (copies > 1).any():
            n_rows_of_term = copies @ (tf_idf > 0)
            ratio = (1 + copies.sum()) / (1 + n_rows_of_term)
            vectorizer.idf_ = np.log(ratio) + 1
            tf_idf = vectorizer.transform(texts)
        n_components = min(N_COMPONENTS, len(levels) - 1, tf_idf.shape[1] - 1)
        if n_components < 1:
            return None
        # By ARPACK, whose start is drawn by a seed, to the last digits.
        svd = TruncatedSVD(n_components, algorithm="arpack", random_state=0)
        rows = tf_idf
        if weights is not None:
            rows = tf_idf.multiply(np.sqrt(weights / weights.mean())[:, None]).tocsr()
        svd.fit(rows)
        sizes = svd.singular_values_
        kept = np.flatnonzero(sizes > LEAST_SHARE * sizes[0])
        return cls(vectorizer, svd, tuple(map(str, kept))), tf_idf

    def tf_idf(self, codes, levels):
        """The tf-idf of texts ``levels[codes]``, sparse: zeros where they miss.

        Shapes: codes (n_samples,); returned (n_samples, n_terms).
        """
        return self.vectorizer.transform([*levels, ""])[codes]

    def components(self, tf_idf):
        """The components of a tf-idf, a list of arrays of shape (n_samples,)."""
        components = self.svd.transform(tf_idf)
        return [components[:, int(part)] for part in self.parts]
