"""The schema of the database, and the migrations to it."""
