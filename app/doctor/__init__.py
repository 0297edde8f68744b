"""The checks of `memobook doctor`: each says what is wrong with one part of the service, and what to do."""
