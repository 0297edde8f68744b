"""The rolling summary: one text about the messages before the history, extended by folds."""
