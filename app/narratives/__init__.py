"""Versioned texts that grow by folding new material into the previous version: summary, diary and running recap."""
