from datetime import UTC, datetime
from typing import Any

from celery import Celery, chain, shared_task
from celery.schedules import crontab

from bookshop.celery import app, durable
from bookshop.outside import catalogue, post
from orchestrator import activity, workflow


@shared_task
def count_sales(day: str) -> int:
    return catalogue.price(day)


@shared_task
def send_report(cents: int) -> str:
    return post.write("owner", f"{cents} cents")


@shared_task
def nightly_report() -> None:
    chain(count_sales.s(datetime.now(UTC).date().isoformat()), send_report.s()).delay()


@app.on_after_finalize.connect
def add_entry(sender: Celery, **_: Any) -> None:
    sender.add_periodic_task(crontab(hour=2, minute=0), nightly_report.s(), name="nightly-report")


@workflow.defn
async def report(day: str) -> str:
    cents = await activity.of(count_sales).execute(day)
    return await activity.of(send_report).execute(cents)


@shared_task
def nightly_workflow() -> None:
    day = datetime.now(UTC).date().isoformat()
    durable.start(report, day, id=f"report-{day}")
