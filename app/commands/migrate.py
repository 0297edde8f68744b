"""memobook migrate: migrate the database to the current schema."""

import argparse

from app.commands.arguments import add_data, find_database_url
from app.commands.database import naming_database
from app.migrate import migrate, new_migration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the database and for writing a new migration."""
    add_data(parser)
    parser.add_argument("--new", metavar="SLUG", help="write a new migration from the models instead of migrating")


def run(options: argparse.Namespace) -> int:
    """Migrate the database, or write a new migration."""
    url = find_database_url(options.data)
    with naming_database():
        if options.new:
            new_migration(url, options.new)
        else:
            migrate(url)
    return 0
