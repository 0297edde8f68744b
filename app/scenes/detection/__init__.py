"""Where a scene ends: what a model is asked, when, and what waits for its answer."""
