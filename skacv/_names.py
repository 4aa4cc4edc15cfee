"""Names that a user may have meant, for errors about a name that there is not."""

from difflib import get_close_matches


def did_you_mean(name, names, most=3):
    """The question that ends an error about a name, with those that are near to it.

    Nothing if none of ``names`` is.
    """
    if not isinstance(name, str):
        return ""
    as_written = {one.lower(): one for one in names}
    nearest = get_close_matches(name.lower(), as_written, most)
    return question([as_written[one] for one in nearest])


def question(nearest):
    """Whether one of these names was meant, after a blank; nothing without names."""
    return f" Did you mean {', '.join(map(repr, nearest))}?" if nearest else ""
