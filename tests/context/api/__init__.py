"""What requests to the service get as a context; the tests beside this room call the functions."""
