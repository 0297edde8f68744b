"""What an operator asks: does it live, is it ready, what is due, what has failed."""
