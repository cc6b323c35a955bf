"""Stands in for a warehouse."""


def pick(order_id: str) -> str:
    """Returns the name of a parcel."""
    return f"parcel-{order_id}"


def label(order_id: str, address: str) -> str:
    """Returns the text of a label."""
    return f"label-{order_id}, {address}"
