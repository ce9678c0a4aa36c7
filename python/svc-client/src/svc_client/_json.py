"""From JSON to dataclasses and back."""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

from .errors import BadResponse

T = TypeVar("T")


def segment(text: str) -> str:
    """Text as one segment of a path."""
    return quote(text, safe="")


def wire(name: str) -> str:
    """The name in JSON of a field or an argument: `bytesDone` of `bytes_done`, `as` of `as_`."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def decode(kind: Any, value: Any, where: str = "the answer") -> Any:
    """`value` as `kind`. Unknown fields are ignored, as the API asks of its clients; so are
    unknown words where a newer daemon may have more of them.

    :raises BadResponse: a field is missing, or of the wrong type
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), value, where)
    if origin is list:
        if not isinstance(value, list):
            raise BadResponse(f"{where} is no array")
        (item,) = get_args(kind)
        return [decode(item, each, f"{where}[{i}]") for i, each in enumerate(value)]
    if is_dataclass(kind):
        return _decode_object(kind, value, where)
    if kind is Any or origin is dict:
        return value
    expected = str if origin is Literal else kind
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise BadResponse(f"{where} is no {expected.__name__}")
    return value


def _decode_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    present = [option for option in options if option is not type(None)]
    if value is None and len(present) < len(options):
        return None
    for option in present[:-1]:
        try:
            return decode(option, value, where)
        except BadResponse:
            continue
    return decode(present[-1], value, where)


def _decode_object(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise BadResponse(f"{where} is no object")
    hints = _hints(kind)
    known = {}
    for each in fields(kind):
        name = wire(each.name)
        if name in value:
            known[each.name] = decode(hints[each.name], value[name], f"{where}.{name}")
        elif each.default is MISSING:
            raise BadResponse(f"{where} has no {name}")
    return kind(**known)


def encode(value: Any) -> Any:
    """The JSON of a request; what is None is left out."""
    if is_dataclass(value):
        return encode({wire(each.name): getattr(value, each.name) for each in fields(value)})
    if isinstance(value, dict):
        return {key: encode(each) for key, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [encode(each) for each in value]
    return value
