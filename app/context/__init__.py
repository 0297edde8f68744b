"""The assembled context: segments in order, within the budget, in the caller's format."""
