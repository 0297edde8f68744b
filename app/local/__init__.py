"""The embedded stack: PostgreSQL, Valkey, worker and API as children of one process.

errors · directory · lock · sockets        one line for people, DATA and what lies in it
processes · leftovers                      which process a pid means, and what a killed run left behind
account · launch · command · children      who a child runs as, how it starts, is watched and ends
binaries · postgres · valkey               the two servers
stack · running · up                       all of it, for `memobook up`, the demo and the tests
"""
