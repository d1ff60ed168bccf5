"""Measures how the work of a stream changes with the number of nodes.

All nodes share one core, because this must work on a machine with two. So what is compared is the CPU time per
stream, not the throughput, and whether a stream costs the stores more commands.

The number of streams on each node is the same whether it is alone or not, because a node that has many streams
at once batches its work and needs less time for each. All rounds occupy the core completely: otherwise the
other core would be busier in rounds with more nodes, and if both are hardware threads of one physical core,
that alone would slow the nodes down. Processes that take turns on a core also empty its caches for each other.
To see how much that is, the same rounds are measured with relays (`bench.baseline`), which share nothing that
could slow them down.
"""
