"""The embedded stack: PostgreSQL, Valkey, worker and API as child processes of one process.

errors · directory · lock · sockets        the error class, the data directory DATA and its contents
processes · leftovers                      identifying processes, and ending those that a killed run left behind
account · launch · command · children      the user of a child process, its start, supervision and end
binaries · postgres · valkey · servers     the two servers
ctype · conversion · fingerprint           the LC_CTYPE of the databases, and conversion to it
address · stack · running · up             the whole service, for `memobook up`, the demo and the tests
"""
