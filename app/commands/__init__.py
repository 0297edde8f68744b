"""The commands of `memobook`, each with `add_arguments(parser)` and `run(options) -> exit code`."""
