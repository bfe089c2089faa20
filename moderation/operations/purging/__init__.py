"""Purges from confirmation to completion.

The life of a step, in `quarantine`, `stamping`, `execution` and `verification`:

Steps of a purge, each one bucket's part of the manifest, from *pending* to *counted*.

Steps that delete a few rows are processed in groups: one statement to Postgres for each transition of all of them, and
the statements to Cassandra of many buckets in flight. A group is a number of steps, not a unit: each step is moved,
lost, held and counted on its own.

Never done: deleting messages that were not frozen; deleting before the quarantine was read back and is on disk;
sending a delete whose stamp is not stored on the step.

1. *quarantining*: a stamp R0 is issued, the bucket is read, the rows of the manifest are quarantined under R0 and
   read back.
2. *stamped*: T = R0 - 10 s, the ranges and the survivors inside them are stored in one write.
3. *rewritten*: those survivors are written at T + 1 µs, on every replica.
4. *deleted*: ranges at T, rows at their own WRITETIME.
5. *verified*: messages that still exist are quarantined and deleted by row.
6. *closed*: the ledger is updated with the live ids.
7. *counted*: counts, and the record of the deletes, in one transaction.

A crash before *stamped* leaves chunks that no step refers to, and a step that starts over. A crash after it leaves a
step that resumes with the stored values; every statement may have been sent before, and with the same stamp it has no
further effect.

T is in the past because a range also deletes messages that the read did not see. Writes after R0 - 10 s survive it,
and those of the manifest are found by the verification read.
"""
