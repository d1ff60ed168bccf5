"""Assets of users: the entries of the ledger, and the assets that follow from them.

Share groups have no asset rows. The asset of a member is derived from that of the owner when it is read
(`share_groups.py`), so it ends, renews and is refunded with it. An upgrade moves the group to the new asset.

Each use of a quota is one row (`quotas.py`) with its free units and the keys of its entries in the ledger. Counts
are sums over these rows and entries: there are no counters that could differ from them. The row is stored in the
transaction that stores the task, before the host is called. The transaction that ends the task without a result
gives the units back. Free units belong to the day on which they were used.
"""
