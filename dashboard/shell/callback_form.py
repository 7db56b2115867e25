"""What a browser may post to Dash: checked before Dash sees it, which has no words for a wrong one.

Dash takes a body that breaks its form as a fault of its own: 500, and a traceback in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from collector.web.errors import BadBody

MAX_BYTES = 4 << 20
"""Of a body: the largest that pages send is a statement."""

_HINT = "pages send what their components hold; for a program there is /v1"

_TEXT, _NUMBER = (str, type(None)), (int, float, type(None))
_KINDS: dict[str, tuple[type, ...]] = {
    "pathname": (str,),
    "search": _TEXT,
    "value": _TEXT,
    "data": _TEXT,
    "n_intervals": _NUMBER,
    "n_clicks": _NUMBER,
}
"""What the properties hold that our callbacks read."""


def check_form(body: bytes, callbacks: Mapping[str, Any]) -> None:
    """Check one call of a callback.

    Args:
        body: as it was posted.
        callbacks: Dash's ``callback_map``.

    Raises:
        BadBody: it is no JSON of that form, or there is no such callback.
    """
    try:
        asked = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _bad("the body is not JSON", "body") from error
    if not isinstance(asked, dict):
        raise _bad("the body is no object", "body")
    output = asked.get("output")
    known = callbacks.get(output) if isinstance(output, str) else None
    if known is None or "callback" not in known:
        raise _bad("there is no such callback", "output")
    for told, declared in (("inputs", known["inputs"]), ("state", known["state"])):
        _check_values(asked.get(told, []), declared, told)
    changed = asked.get("changedPropIds", [])
    if not isinstance(changed, list) or not all(isinstance(one, str) for one in changed):
        raise _bad("these are no names of properties", "changedPropIds")
    assert isinstance(output, str)
    _check_outputs(asked.get("outputs"), output)


def _check_outputs(outputs: Any, output: str) -> None:
    """``outputs`` names again what ``output`` does: ``id.property``, or ``..id.property...id.property..``."""
    many = output.startswith("..") and output.endswith("..")
    names = output[2:-2].split("...") if many else [output]
    pairs = [tuple(name.rsplit(".", 1)) for name in names]
    told = outputs if many else [outputs]
    if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
        raise _bad("these are no outputs", "outputs")
    if [(one.get("id"), one.get("property")) for one in told] != pairs:
        raise _bad("these are not the callback's outputs", "outputs")


def _check_values(values: Any, declared: list[dict[str, Any]], told: str) -> None:
    if not isinstance(values, list) or len(values) != len(declared):
        raise _bad(f"the callback takes {len(declared)} of these", told)
    for place, (value, wanted) in enumerate(zip(values, declared, strict=True)):
        where = f"{told}[{place}]"
        if not isinstance(value, dict):
            raise _bad("this is no component's property", where)
        if (value.get("id"), value.get("property")) != (wanted["id"], wanted["property"]):
            raise _bad(f"here {wanted['id']}.{wanted['property']} is expected", where)
        kinds = _KINDS.get(wanted["property"])
        if kinds is not None and not isinstance(value.get("value"), kinds):
            raise _bad(f"{wanted['property']} holds no such value", where)


def _bad(what: str, where: str) -> BadBody:
    return BadBody(what, where=where, hint=_HINT)
