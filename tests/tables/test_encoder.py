"""TableEncoder: any frame, the same numbers; columns that were not as in fit."""

import numpy as np
import pytest

from skacv import TableEncoder

from .frames import TABLES

of_every_table = pytest.mark.parametrize("name", TABLES)


@of_every_table
def test_codes_are_those_that_the_table_was_made_of(name):
    table = TABLES[name]()
    encoder = TableEncoder("codes").fit(table.X)
    assert encoder.get_feature_names_out().tolist() == list(table.codes)
    expected = np.column_stack(list(table.codes.values())).astype(float)
    np.testing.assert_array_equal(encoder.codes(table.X), expected)
    np.testing.assert_array_equal(encoder.transform(table.X), expected)
    assert encoder.kinds_.keys() == {name for name in encoder.kinds_}


@of_every_table
@pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")
def test_the_same_rows_have_the_same_codes(name):
    table = TABLES[name]()
    encoder = TableEncoder().fit(table.X)
    codes, columns = encoder.codes(table.X), encoder.transform(table.X)
    for how, X in table.same.items():
        np.testing.assert_array_equal(encoder.codes(X), codes, err_msg=how)
        np.testing.assert_array_equal(encoder.transform(X), columns, err_msg=how)
