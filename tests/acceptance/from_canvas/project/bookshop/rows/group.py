import asyncio
from typing import Any

from celery import group, shared_task

from bookshop.outside import post
from orchestrator import activity, workflow

CARRIERS = ["snail", "pigeon", "drone"]


@shared_task
def quote(carrier: str, parcel: str) -> int:
    return post.quote(carrier, parcel)


def ask_all(parcel: str) -> Any:
    return group(quote.s(carrier, parcel) for carrier in CARRIERS).delay()


@workflow.defn
async def quotes(parcel: str) -> list[int]:
    return await asyncio.gather(*(activity.of(quote).execute(carrier, parcel) for carrier in CARRIERS))
