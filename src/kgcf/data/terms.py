"""Labels ↔ RDF terms, without loss: what a label is written as in N-Triples, and what label a term gets.

An IRI is its own label, a blank node is called `_:id`, a triple term stands in its RDF notation `<<( … )>>`. Any
other label is written as an IRI under `urn:kgcf:`, percent-encoded, and read back as the label that it was.
"""

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Literal
from urllib.parse import quote, unquote_to_bytes

Position = Literal["subject", "predicate", "object"]
PREFIX = "urn:kgcf:"

_PLANES = "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
_BEYOND_ASCII = f"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef{_PLANES}\U000e1000-\U000efffd"  # RFC 3987, ucschar
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_NAME = rf"A-Za-z0-9\-._~!$&'()*+,;={_BEYOND_ASCII}"
_ESCAPE = "%[0-9A-Fa-f]{2}"
_IRI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*:"
    rf"(?://(?:(?:[{_NAME}:]|{_ESCAPE})*@)?(?:\[(?P<address>[^\]]*)\]|(?:[{_NAME}]|{_ESCAPE})*)(?::[0-9]*)?(?=[/?#]|\Z)"
    r"|(?!//))"
    rf"(?:[{_NAME}:@/]|{_ESCAPE})*"
    rf"(?:\?(?:[{_NAME}:@/?{_PRIVATE}]|{_ESCAPE})*)?"
    rf"(?:#(?:[{_NAME}:@/?]|{_ESCAPE})*)?"
)
_FUTURE_ADDRESS = re.compile(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+")

_LETTER = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff_"
)
_INNER = rf"{_LETTER}0-9\-\u00b7\u0300-\u036f\u203f\u2040"
_BLANK = re.compile(rf"_:[{_LETTER}0-9](?:[{_INNER}.]*[{_INNER}])?")

_LITERAL = re.compile(
    r'"(?:[^"\\\n\r]|\\[tbnrf"\'\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*"'
    r"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^<(?P<type>[^<>]*)>)?"
)
_TRIPLE_TERM = re.compile(r"<<\( (?P<subject><[^<>]*>|_:\S+) <(?P<predicate>[^<>]*)> (?P<object>.*) \)>>", re.DOTALL)


def write_term(label: str, position: Position) -> str:
    """A label as an N-Triples term that may stand in this position; no two labels are the same term."""
    if position != "predicate" and _BLANK.fullmatch(label):
        return label
    if position == "object" and _is_triple_term(label):
        return label
    if is_iri(label) and read_iri(label, position) == label:
        return f"<{label}>"
    return f"<{PREFIX}{quote(label, safe='')}>"


def read_iri(iri: str, position: Position) -> str:
    """The label of an IRI: the label that we wrote as this IRI if there is one, else the IRI itself."""
    if not iri.startswith(PREFIX):
        return iri
    try:
        label = unquote_to_bytes(iri.removeprefix(PREFIX)).decode("utf-8")
    except UnicodeDecodeError:
        return iri
    return label if label and write_term(label, position) == f"<{iri}>" else iri


def read_term(term: Any, position: Position) -> str:  # noqa: ANN401
    """The label of a term as pyoxigraph has it; literals have none."""
    kind = type(term).__name__
    if kind == "NamedNode":
        return read_iri(str(term.value), position)
    return f"_:{term.value}" if kind == "BlankNode" else _notation(term)


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI (RFC 3987), with all its characters allowed where they stand."""
    found = _IRI.fullmatch(text)
    return found is not None and (found["address"] is None or _is_address(found["address"]))


def _is_address(text: str) -> bool:
    """What may stand between the brackets of a host."""
    if _FUTURE_ADDRESS.fullmatch(text):
        return True
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def _is_triple_term(text: str) -> bool:
    """Whether a text is `<<( subject predicate object )>>` with valid terms, as an object may be in RDF 1.2."""
    found = _TRIPLE_TERM.fullmatch(text)
    if found is None or not is_iri(found["predicate"]):
        return False
    return _is_resource(found["subject"]) and (_is_resource(found["object"]) or _is_value(found["object"]))


def _is_resource(text: str) -> bool:
    return bool(_BLANK.fullmatch(text)) or (text[:1] == "<" and text[-1:] == ">" and is_iri(text[1:-1]))


def _is_value(text: str) -> bool:
    """Whether a text is a literal or another triple term."""
    literal = _LITERAL.fullmatch(text)
    if literal is None:
        return _is_triple_term(text)
    return literal["type"] is None or is_iri(literal["type"])


def _notation(term: Any) -> str:  # noqa: ANN401
    """A term in N-Triples; pyoxigraph writes a triple term without its brackets."""
    if type(term).__name__ != "Triple":
        return str(term)
    return f"<<( {_notation(term.subject)} {_notation(term.predicate)} {_notation(term.object)} )>>"
