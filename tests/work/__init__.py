"""Background work of all layers: the worker's loop, its process, and what neither may lose."""
