"""The descriptor of a memory layer, and code that all layers share: running jobs, asking the model, staleness."""
