"""The test infrastructure itself: services are found or started, kept apart, and never left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import amqp
import psycopg2
import pytest
import redis
from kombu import Connection

from tests.support import postgres_databases, services
from tests.support.processes import ROOT, is_alive
from tests.support.waiting import StillWaiting, wait_until

APP = """
import os
from celery import Celery

app = Celery("probe", broker=os.environ["BROKER_URL"])
app.conf.broker_connection_retry_on_startup = True

@app.task(name="touch")
def touch(path):
    with open(path, "a") as file:
        file.write("x")
"""


@pytest.fixture
def probe_app(tmp_path: Path) -> Path:
    (tmp_path / "probe.py").write_text(APP)
    return tmp_path


def query(url: str, statement: str) -> list:
    with postgres_databases.admin_cursor(url) as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_waiting_returns_the_first_true_answer():
    answers = iter([0, "", None, 7])
    assert wait_until(lambda: next(answers), timeout=5, interval=0) == 7


def test_waiting_in_vain_says_for_what_and_what_it_saw_last():
    with pytest.raises(StillWaiting, match="in vain for: rain; last answer: 0"):
        wait_until(lambda: 0, timeout=0.01, message="rain")


def test_a_missing_service_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        services.missing("no such thing")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such thing"):
        services.missing("no such thing")


def test_an_empty_postgresql_database_holds_no_table(empty_postgres_url: str):
    assert query(empty_postgres_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []


def test_a_reset_database_holds_its_seeds_and_nothing_else(empty_postgres_url: str):
    url = empty_postgres_url
    query(url, "CREATE TABLE parent (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
    query(url, "CREATE TABLE child (parent_id bigint REFERENCES parent)")
    query(url, "INSERT INTO parent (name) VALUES ('seed')")
    postgres_databases.remember_seeds(url)
    query(url, "UPDATE parent SET name = 'changed'")
    query(url, "INSERT INTO child SELECT id FROM parent")
    postgres_databases.reset(url)
    assert query(url, "SELECT name FROM parent") == [("seed",)]
    assert query(url, "SELECT * FROM child") == []


def test_a_reset_ends_a_forgotten_transaction_but_no_idle_connection(empty_postgres_url: str):
    url = empty_postgres_url
    query(url, "CREATE TABLE t (id int)")
    query(url, "INSERT INTO t VALUES (1)")
    idle, forgotten = psycopg2.connect(url), psycopg2.connect(url)
    idle.autocommit = True
    forgotten.cursor().execute("LOCK TABLE t IN EXCLUSIVE MODE")
    postgres_databases.reset(url)
    with pytest.raises(psycopg2.Error):
        forgotten.cursor().execute("SELECT 1")
    with idle.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
    idle.close()


def test_both_databases_come_migrated_and_without_runs(database_url: str):
    from orchestrator.store.database import Database

    database = Database.open(database_url)
    try:
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM orchestrator_runs").scalar() == 0
    finally:
        database.dispose()


def test_each_test_has_a_virtual_host_without_queues(rabbitmq_url: str, queue_prefix: str):
    with Connection(rabbitmq_url) as connection:
        queue = connection.SimpleQueue(queue_prefix + "letters")
        queue.put("hello")
        message = queue.get(timeout=5)
        message.ack()
        assert message.payload == "hello"


@pytest.mark.parametrize("turn", [1, 2])
def test_what_one_test_sends_the_next_does_not_find(rabbitmq_url: str, rabbitmq_vhosts_pool, turn: int):
    if not rabbitmq_vhosts_pool.exclusive:
        pytest.skip("this broker lets tests make no virtual hosts")
    with Connection(rabbitmq_url) as connection:
        with pytest.raises(amqp.NotFound):
            connection.channel().queue_declare("fixed-name", passive=True)
        connection.channel().queue_declare("fixed-name")


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_an_empty_redis_database(redis_url: str, turn: int):
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("key", turn)


@pytest.mark.slow
def test_an_own_postgresql_survives_a_kill_and_leaves_nothing_behind(own_postgres):
    server = own_postgres(max_connections="17")
    query(server.url, "CREATE TABLE t AS SELECT 1 AS id")
    assert query(server.url, "SHOW max_connections") == [("17",)]
    server.kill()
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(server.url, connect_timeout=2)
    server.start()
    assert query(server.url, "SELECT id FROM t") == [(1,)]
    server.close()
    assert not server.folder.exists()


@pytest.mark.slow
def test_an_own_rabbitmq_keeps_durable_messages_over_a_restart(own_rabbitmq):
    server = own_rabbitmq(consumer_timeout="60000")
    with Connection(server.url) as connection:
        connection.SimpleQueue("letters").put("hello", delivery_mode=2)
        # A persistent message is on disk when its publisher confirm came; this reads it back instead.
        wait_until(lambda: connection.SimpleQueue("letters").qsize() == 1)
    server.restart()
    with Connection(server.url) as connection:
        assert connection.SimpleQueue("letters").get(timeout=10).payload == "hello"
    server.kill()
    assert not server.is_running()
    server.close()
    assert not server.folder.exists()
    assert not server.epmd.is_running()


def test_an_own_redis_can_be_frozen_and_resumed(own_redis):
    server = own_redis()
    with redis.Redis.from_url(server.url, socket_timeout=0.3, retry=None) as client:
        server.freeze()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert wait_until(client.ping, ignoring=(redis.RedisError,))


def test_a_worker_process_runs_tasks_and_dies_whole(
    celery_worker_process, rabbitmq_url: str, probe_app: Path, tmp_path: Path
):
    env = {"BROKER_URL": rabbitmq_url, "PYTHONPATH": f"{probe_app}{os.pathsep}{ROOT}"}
    worker = celery_worker_process("probe", queues=["probe"], env=env)
    done = tmp_path / "done"
    with Connection(rabbitmq_url) as connection:
        send(connection, str(done))
        wait_until(done.exists, message=worker.logs)
    children = worker.children()
    assert len(children) == 2
    worker.kill()
    assert worker.returncode == -signal.SIGKILL
    assert not any(map(is_alive, children))
    worker.restart()
    assert worker.terminate() == 0


def send(connection: Connection, path: str) -> None:
    from celery import Celery

    with Celery("sender", broker=connection.as_uri(include_password=True)) as app:
        app.send_task("touch", args=[path], queue="probe", ignore_result=True)


def test_what_a_killed_test_run_started_is_cleaned_up(tmp_path: Path):
    script = (
        "import sys, time\n"
        "from tests.support.redis_server import RedisServer\n"
        "server = RedisServer(); server.start()\n"
        "print(server.process.pid, server.folder, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        run.kill()
    wait_until(lambda: not Path(folder).exists(), message=f"{folder} is removed")
    wait_until(lambda: not is_alive(int(pid)), message=f"server {pid} is gone")
