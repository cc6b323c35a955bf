from datetime import timedelta
from typing import Any

from celery import Task, shared_task

from bookshop.outside import catalogue
from orchestrator import RetryPolicy, activity, workflow


@shared_task(bind=True, max_retries=5)
def look_up(self: Task[Any, Any], isbn: str) -> str:
    try:
        return catalogue.find(isbn)
    except ConnectionError as error:
        raise self.retry(exc=error, countdown=60 * 2**self.request.retries) from error


@activity.defn(
    retry_policy=RetryPolicy(
        initial_interval=timedelta(minutes=1), maximum_interval=timedelta(hours=1), maximum_attempts=6
    )
)
def find_title(isbn: str) -> str:
    return catalogue.find(isbn)


@workflow.defn
async def titled(isbn: str) -> str:
    return await find_title.execute(isbn)
