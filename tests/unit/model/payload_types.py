"""Types that payload tests send through the converter, as authors write them: with postponed annotations."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import namedtuple
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, Generic, NamedTuple, NotRequired, Optional, TypedDict, TypeVar
from uuid import UUID

import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    GREEN = ("g", 1)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Size(StrEnum):
    SMALL = "s"
    LARGE = "l"


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    quantity: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    id: UUID
    lines: list[Line]
    due: dt.datetime | None = None
    labels: frozenset[str] = frozenset()
    parent: Optional[Order] = None  # noqa: UP045 - as many people still write it
    note: str = ""


@dataclasses.dataclass
class Everything:
    raw: bytes
    more: bytearray
    when: dt.datetime
    day: dt.date
    clock: dt.time
    span: dt.timedelta
    price: Decimal
    key: UUID
    colour: Colour
    level: Level
    size: Size
    tags: set[str]
    point: tuple[int, float]
    by_number: dict[int, str]
    by_maybe: dict[int | None, str]
    path: Path
    anything: Any = None


class Point(NamedTuple):
    x: int
    label: bytes = b""


Plain = namedtuple("Plain", "a b")  # noqa: PYI024 - the untyped kind is what is tested


class Address(TypedDict):
    street: str
    since: NotRequired[dt.date]


class Company(TypedDict, total=False):
    head: Address
    parent: Company


class ModernAddress(typing_extensions.TypedDict):
    street: str
    raw: bytes


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Customer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    full_name: str = Field(alias="fullName")
    born: dt.datetime
    balance: Decimal
    photo: bytes = b""
    tags: set[str] = set()
    extra_data: Any = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def initial(self) -> str:
        return self.full_name[:1]


class Box(BaseModel, Generic[T]):
    content: T


@dataclasses.dataclass
class Crate(Generic[T]):
    content: T


class Ids(RootModel[list[UUID]]):
    pass


class Swapped(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    a: int = Field(alias="b")
    b: int = Field(alias="a")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    known: int


class Millis(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    span: dt.timedelta


@dataclasses.dataclass
class Cat:
    name: str


@dataclasses.dataclass
class Dog:
    name: str


@dataclasses.dataclass
class Puppy(Dog):
    weeks: int = 8
