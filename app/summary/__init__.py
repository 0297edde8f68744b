"""The rolling summary: everything before the history, as one text that grows by folding."""
