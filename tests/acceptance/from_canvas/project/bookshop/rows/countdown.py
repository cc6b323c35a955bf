from datetime import timedelta

from celery import shared_task
from celery.result import AsyncResult

from bookshop.outside import post
from orchestrator import activity, workflow


@shared_task
def ask_for_review(customer: str) -> str:
    return post.write(customer, "how was it?")


def ask_later(customer: str) -> AsyncResult[str]:
    return ask_for_review.apply_async((customer,), countdown=14 * 24 * 3600)


@workflow.defn
async def review(customer: str) -> str:
    await workflow.sleep(timedelta(days=14))
    return await activity.of(ask_for_review).execute(customer)
