"""Losses that libraries define, which take the prediction first."""


def not_called(name, arguments):
    """The error of a loss that is known, and cannot be called as one of single rows."""
    return ValueError(
        f"{name} takes {arguments}, but a loss is called as loss(y, prediction) here "
        "and must return one number per row: pass such a function, for example lambda "
        f"y, prediction: {name}(prediction, y)."
    )


def row_means(name, loss, y, prediction):
    """Losses of the entries of predictions, averaged over the outputs of each row.

    ``loss(prediction, y)`` has an entry for each. Shapes: returned (n_rows,).
    """
    if tuple(y.shape) != tuple(prediction.shape):
        raise ValueError(
            f"{name} compares y, of shape {tuple(y.shape)}, with predictions of shape "
            f"{tuple(prediction.shape)}: give both the same shape, as "
            "torch.nn.Flatten(0) or a reshape does for one output."
        )
    losses = loss(prediction, y)
    return losses if losses.ndim == 1 else losses.reshape(len(losses), -1).mean(1)
