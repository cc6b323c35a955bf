"""What the shop's customers and packers call."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from orders.models import Order
from orders.workflows import fulfil
from shop.celery import durable


@csrf_exempt
@require_POST
@transaction.atomic
def place(request: HttpRequest) -> JsonResponse:
    """Places an order; its workflow starts with the commit, if there is one."""
    order = Order.objects.create(item=request.POST["item"], cents=request.POST["cents"])
    handle = durable.start_on_commit(fulfil, order.pk, id=order.workflow_id)
    return JsonResponse({"order": order.pk, "workflow": handle.id}, status=201)


def show(request: HttpRequest, pk: int) -> JsonResponse:
    """Tells where an order stands, and what its workflow does."""
    order = get_object_or_404(Order, pk=pk)
    about = durable.get_handle(order.workflow_id).describe()
    return JsonResponse({"status": order.status, "workflow": about.status})


@csrf_exempt
@require_POST
def packed(request: HttpRequest, pk: int) -> JsonResponse:
    """Tells the workflow which parcel the order is in."""
    order = get_object_or_404(Order, pk=pk)
    durable.get_handle(order.workflow_id).signal("packed", request.POST["parcel"])
    return JsonResponse({}, status=202)
