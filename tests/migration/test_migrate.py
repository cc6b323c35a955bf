"""Upgrading, creating and checking the schema; and that the two ways to make it make the same."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from orchestrator.errors import SchemaOutdated
from orchestrator.store import migrate, sweeps
from orchestrator.store.database import Database
from tests.support.processes import ManagedProcess

# Everything about our tables that the database itself can tell, constraints and storage included.
CATALOGUE = {
    "postgresql": """
SELECT 'column ' || c.relname::text || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || ' not null ' || a.attnotnull::text || ' identity ' || a.attidentity::text || ' collate ' || coalesce(o.collname, '')
       || ' default ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation o ON o.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relname LIKE 'orchestrator%' AND c.relkind = 'r' AND a.attnum > 0
UNION ALL SELECT 'constraint ' || r.conname::text || ' ' || pg_get_constraintdef(r.oid)
  FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid WHERE c.relname LIKE 'orchestrator%'
UNION ALL SELECT 'index ' || pg_get_indexdef(i.indexrelid)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relname LIKE 'orchestrator%'
UNION ALL SELECT 'options ' || relname::text || ' ' || reloptions::text
  FROM pg_class WHERE relname LIKE 'orchestrator%' AND relkind = 'r' AND reloptions IS NOT NULL
""",
    "sqlite": "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'",
}


def catalogue(db: Database) -> set[str]:
    """What the database holds, one line a fact; SQLite keeps statements, whose lines may come in any order."""
    with db.read() as conn:
        rows = [row[0] for row in conn.execute(text(CATALOGUE[db.dialect]))]
    if db.dialect == "postgresql":
        return {row for row in rows if migrate.VERSION_TABLE not in row}
    facts = set()
    for row in rows:
        lines = [line.strip().rstrip(",") for line in row.replace("NOT NULL PRIMARY KEY", "").strip().splitlines()]
        facts |= {f"{lines[0].split('(')[0].strip()}: {line.rstrip(' (')}" for line in lines}
    return {fact for fact in facts if migrate.VERSION_TABLE not in fact and "PRIMARY KEY" not in fact}


def test_creating_at_once_and_upgrading_make_the_same(empty_db: Database) -> None:
    migrate.upgrade(empty_db)
    upgraded = catalogue(empty_db)
    migrate_down(empty_db)
    assert catalogue(empty_db) == set()
    migrate.create(empty_db)
    assert catalogue(empty_db) == upgraded
    assert len(upgraded) > 100


def migrate_down(db: Database) -> None:
    from alembic import command

    db.run(lambda conn: command.downgrade(migrate.alembic_config(conn), "base"), what="test")
    db.run(lambda conn: conn.execute(text(f"DROP TABLE {migrate.VERSION_TABLE}")), what="test")


@pytest.mark.parametrize("make", [migrate.upgrade, migrate.create])
def test_a_fresh_schema_passes_the_check_and_has_the_sweeps_row(
    empty_db: Database, make: Callable[[Database], None]
) -> None:
    make(empty_db)
    migrate.check(empty_db)
    assert migrate.current(empty_db) == migrate.HEAD
    with empty_db.read() as conn:
        assert sweeps.clock(conn) == 0
        assert conn.scalar(text("SELECT count(*) FROM orchestrator_sweep")) == 1


@pytest.mark.parametrize("make", [migrate.upgrade, migrate.create])
def test_doing_it_again_changes_nothing(empty_db: Database, make: Callable[[Database], None]) -> None:
    migrate.upgrade(empty_db)
    before = catalogue(empty_db)
    make(empty_db)
    assert catalogue(empty_db) == before


def test_a_schema_made_at_once_can_be_upgraded_later(empty_db: Database) -> None:
    migrate.create(empty_db)
    migrate.upgrade(empty_db)
    migrate.check(empty_db)


def test_the_head_we_ask_for_is_the_head_of_the_migrations(empty_db: Database) -> None:
    with empty_db.read() as conn:
        script = ScriptDirectory.from_config(migrate.alembic_config(conn))
    assert script.get_current_head() == migrate.HEAD
    assert all(migrate._parts(revision.revision) for revision in script.walk_revisions())


def test_an_empty_database_is_told_what_to_run(empty_db: Database) -> None:
    assert migrate.current(empty_db) is None
    with pytest.raises(SchemaOutdated, match="no tables for workflows yet; run: celery -A <your app> workflow migrate"):
        migrate.check(empty_db)


def stamp(db: Database, revision: str) -> None:
    migrate.create(db)
    statement = text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = :revision")
    db.run(lambda conn: conn.execute(statement, {"revision": revision}), what="test")


def test_a_schema_that_is_behind_is_told_what_to_run(empty_db: Database) -> None:
    stamp(empty_db, "0000_0000")
    with pytest.raises(SchemaOutdated, match=r"at revision 0000_0000, but .* is needed; run: celery -A"):
        migrate.check(empty_db)


def test_a_schema_that_is_ahead_is_fine_while_it_supports_this_version(empty_db: Database) -> None:
    stamp(empty_db, "9999_0001")
    migrate.check(empty_db)


def test_a_schema_that_is_too_far_ahead_is_told_to_upgrade_the_package(empty_db: Database) -> None:
    stamp(empty_db, "9999_9998")
    with pytest.raises(SchemaOutdated, match=r"too new .* upgrade the package"):
        migrate.check(empty_db)


def test_a_revision_that_is_not_ours_is_refused(empty_db: Database) -> None:
    stamp(empty_db, "a1b2c3")
    with pytest.raises(SchemaOutdated, match="'a1b2c3', which is no revision of ours"):
        migrate.check(empty_db)


@pytest.mark.parametrize("make", [migrate.upgrade, migrate.create])
def test_four_at_once_migrate_one_after_the_other(
    empty_database_url: str, empty_db: Database, make: Callable[[Database], None]
) -> None:
    def run(_: int) -> None:
        db = Database.open(empty_database_url)
        try:
            make(db)
        finally:
            db.dispose()

    if make is migrate.upgrade:
        # alembic keeps one environment for a process, so each needs a process of its own.
        run_processes(empty_database_url)
    else:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(run, range(4)))
    migrate.check(empty_db)


def run_processes(url: str) -> None:
    code = f"from orchestrator.store.migrate import upgrade; upgrade({url!r})"
    log = Path("/dev/null")
    processes = [ManagedProcess([sys.executable, "-c", code], log_path=log) for _ in range(3)]
    try:
        for process in processes:
            process.start()
        assert [process.wait(60) for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.close()


def test_a_team_keeps_its_own_alembic_version_table(empty_db: Database) -> None:
    empty_db.run(lambda conn: conn.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))")), what="test")
    migrate.upgrade(empty_db)
    with empty_db.read() as conn:
        assert conn.scalar(text("SELECT count(*) FROM alembic_version")) == 0
