"""Cities and time zones for `world`, from GeoNames, CLDR and the time zone database."""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from babel.core import get_global  # type: ignore[import-not-found,unused-ignore]
from scripts.world_facts import CODES, ENGLISH, GEONAMES, NAMES, TABLES, Triple

NEARBY_KM = 40


def cities() -> Iterator[Triple]:
    """Capitals and large towns: their country and their time zone."""
    by_country: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in GEONAMES.get_cities().values():
        by_country[city["countrycode"]].append(city)
    chosen = {code: _choose(code, by_country[code]) for code in CODES}
    repeated = Counter(name for found in chosen.values() for name in found)
    taken = set(NAMES.values())
    for code, found in chosen.items():
        for name, (zone, capital) in found.items():
            unique = f"{name} ({NAMES[code]})" if repeated[name] > 1 else name
            unique = f"{name} (city)" if unique in taken else unique
            if capital:
                yield NAMES[code], "has capital", unique
            if not capital or len(found) > 1:
                yield unique, "is city in", NAMES[code]
            yield unique, "observes", _zone_name(zone)


def _choose(code: str, towns: list[dict[str, Any]]) -> dict[str, tuple[str, bool]]:
    """The capital and the largest towns, none of them a suburb of another: name → (zone, is capital)."""
    table = TABLES["capitals"]
    wanted = table["names"].get(code, CODES[code]["capital"].strip())
    has_capital = code not in table["omit"].split() and bool(wanted)
    if code in table["city_states"].split():
        return {}
    towns = [t for t in towns if t["name"] not in TABLES["cities"]["drop"]]
    towns.sort(key=lambda t: (not (has_capital and _plain(_city(t)) == _plain(wanted)), -t["population"]))
    people = CODES[code]["population"]
    count = next(n for n, limit in ((1, 1e6), (2, 5e6), (3, 2e7), (4, 6e7), (5, 2e8), (8, 1e12)) if people < limit)
    kept: list[dict[str, Any]] = []
    for town in towns:
        far = all(_distance(town, other) > NEARBY_KM for other in kept)
        if len(kept) < count and far and (not kept or town["population"] > 90_000):
            kept.append(town)
    found = {_city(t): (t["timezone"], has_capital and _plain(_city(t)) == _plain(wanted)) for t in kept}
    if has_capital and not any(capital for _, capital in found.values()):
        zone = table["zones"].get(code) or kept[0]["timezone"]
        found = {wanted: (zone, True)} | found
    return found


def _city(town: dict[str, Any]) -> str:
    return cast(str, TABLES["cities"]["names"].get(town["name"], town["name"]))


def _plain(text: str) -> str:
    kept = (c for c in unicodedata.normalize("NFKD", text) if c.isalnum())
    return "".join(kept).lower()


def _distance(a: dict[str, Any], b: dict[str, Any]) -> float:
    """Kilometres along the surface."""
    lat_a, lat_b = math.radians(a["latitude"]), math.radians(b["latitude"])
    half = math.radians(a["longitude"] - b["longitude"]) / 2
    sine = math.sin((lat_a - lat_b) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half) ** 2
    return 2 * 6371 * math.asin(math.sqrt(sine))


def zones() -> Iterator[Triple]:
    """Time zones of every country, and their distance from UTC in winter."""
    offsets: dict[str, set[str]] = defaultdict(set)
    for code in CODES:
        for zone in get_global("territory_zones").get(code) or TABLES["countries"]["zones"].get(code, []):
            if zone != "Europe/Simferopol":  # disputed
                name = _zone_name(zone)
                offsets[name].add(_offset(zone))
                yield NAMES[code], "observes", name
    for name, found in offsets.items():
        if len(found) == 1 and name not in found:
            yield name, "is at offset", found.pop()


def _zone_name(zone: str) -> str:
    aliases = get_global("zone_aliases")
    same = [zone, aliases.get(zone), *(old for old, new in aliases.items() if new == zone)]
    meta = next((m for z in same if (m := get_global("meta_zones").get(z))), None)
    names = ENGLISH.meta_zones.get(meta, {}).get("long", {}) if meta else {}
    return cast(str, names.get("generic") or names.get("standard") or _offset(zone))


def _offset(zone: str) -> str:
    local = [datetime(2026, month, 15, tzinfo=ZoneInfo(zone)).utcoffset() for month in (1, 7)]
    minutes = round(min(delta.total_seconds() for delta in local if delta is not None) / 60)
    return f"UTC{'−' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
