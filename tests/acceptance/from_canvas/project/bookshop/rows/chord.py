import asyncio

from celery import chord, shared_task
from celery.result import AsyncResult

from bookshop.outside import post
from bookshop.rows.group import CARRIERS, quote
from orchestrator import activity, workflow


@shared_task
def book(prices: list[int], parcel: str) -> str:
    return post.book(parcel, min(prices))


def send_cheaply(parcel: str) -> AsyncResult[str]:
    return chord((quote.s(carrier, parcel) for carrier in CARRIERS), book.s(parcel)).delay()


@workflow.defn
async def cheap_parcel(parcel: str) -> str:
    prices = await asyncio.gather(*(activity.of(quote).execute(carrier, parcel) for carrier in CARRIERS))
    return await activity.of(book).execute(prices, parcel)
