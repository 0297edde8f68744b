"""The limit of open files, which each connection counts against."""

import resource


def allow_open_files(wanted: int, *, reserved: int) -> int:
    """Raise the limit of this process as far as needed and permitted; return how many of `wanted` files it allows.

    Args:
        wanted: The number of files to be open at once, for connections.
        reserved: The number of other files that are open at the same time.

    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + reserved
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, allowed - reserved)
