from celery import shared_task
from celery.result import allow_join_result

from bookshop.outside import catalogue
from orchestrator import activity, workflow


@shared_task
def price(isbn: str) -> int:
    return catalogue.price(isbn)


@shared_task
def total(isbns: list[str]) -> int:
    with allow_join_result():
        return sum(price.delay(isbn).get(timeout=3) for isbn in isbns)


@workflow.defn
async def basket(isbns: list[str]) -> int:
    return sum([await activity.of(price).execute(isbn) for isbn in isbns])
