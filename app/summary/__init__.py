"""The rolling summary: one text about everything before the history, extended by folds."""
