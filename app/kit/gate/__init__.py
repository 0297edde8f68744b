"""The gate before the database: which request gets the next connection, and what waits."""
