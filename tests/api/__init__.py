"""What holds for every operation of the API."""
