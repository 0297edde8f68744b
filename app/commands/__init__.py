"""The subcommands of `memobook`; each module defines `add_arguments(parser)` and `run(options) -> exit code`."""
