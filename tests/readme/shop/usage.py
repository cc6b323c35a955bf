# anywhere in your code
from shop.celery import durable
from shop.orders import fulfil

handle = durable.start(fulfil, "42", 999, id="order-42")  # again with the same id: the same run
handle.signal("address", "Main St 1")
print(handle.result(timeout=60))
