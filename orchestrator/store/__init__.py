"""The only SQL: tables, named queries, dialects and migrations.

Everything above sees records (:mod:`orchestrator.model.records`), instants in microseconds and the
:class:`~orchestrator.store.database.Database`. Query modules are named after their table; each function
takes the connection of the caller's transaction first and never begins or ends one.
"""
