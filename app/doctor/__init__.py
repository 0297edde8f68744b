"""The checks of `memobook doctor`: each reports the faults of one part of the service, and what to do about them."""
