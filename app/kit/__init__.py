"""What every room uses and what knows none of them: settings, database, errors, due work, the model client."""
