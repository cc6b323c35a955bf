"""The shop of real workers, and the engine under a test's hand, for tests that attack them."""

from tests.conformance.engine.conftest import make_world, world
from tests.integration.celery.conftest import make_shop, redis_shop, shop

__all__ = ["make_shop", "make_world", "redis_shop", "shop", "world"]
