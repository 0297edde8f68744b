"""Facts: keys with values that hold until they are changed."""
