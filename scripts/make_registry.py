"""Make src/kgcf/data/benchmarks.json from a folder of benchmark graphs that has a manifest.json, and from `world`.

    python scripts/make_registry.py DATA_FOLDER

Counts and checksums come from the manifest; names, descriptions and public homes stand below.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "kgcf" / "data"
SPLITS = ("train.txt", "valid.txt", "test.txt")
KEPT_COUNTS = ("entities", "relations", "train", "valid", "test", "repeated_in_train")
UNUSED_FILES = ("entity_names_nbfnet.tsv",)

CONVE = "https://raw.githubusercontent.com/TimDettmers/ConvE/master"
GRAIL = "https://raw.githubusercontent.com/kkteru/grail/master/data"
DRUM = "https://raw.githubusercontent.com/alisadeghian/DRUM/master/datasets"
PYKEEN = "https://raw.githubusercontent.com/pykeen/pykeen/v1.11.1/src/pykeen/datasets"
KGDATASETS = "https://raw.githubusercontent.com/ZhenfengLei/KGDatasets/master"
ASTARNET = "https://raw.githubusercontent.com/DeepGraphLearning/AStarNet/3b7542372e3a792c79e9d525fd7e22e8a289bd84/data"
OPENKE = "https://raw.githubusercontent.com/thunlp/OpenKE/3b7f0b19441f11d6bc9331e8d1001a056f759f00/benchmarks"
VILLMOW = (
    "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/045a868edc0b18d7083b14e80715e82d92938fff"
)

# name: folders, other names, short licence, description
NAMED: dict[str, tuple[list[str], list[str], str, str]] = {
    "world": (["world"], [], "CC BY 4.0", "countries, their neighbours, cities, languages and currencies; embedded"),
    "fb15k-237": (["fb15k-237"], ["fb237"], "CC BY 2.5", "Freebase facts about people, films, places and sports"),
    "wn18rr": (["wn18rr"], [], "WordNet", "WordNet: relations between word senses"),
    "umls": (["umls"], [], "not stated", "medical concepts of the UMLS semantic network"),
    "kinships": (["kinships"], ["kinship"], "not stated", "kinship terms of the Alyawarra"),
    "nations": (["nations"], [], "not stated", "relations between 14 nations"),
    "family": (["family"], ["family_drum"], "not stated", "family relations, split of Neural-LP and DRUM"),
    "umls_drum": (["umls_drum"], [], "not stated", "UMLS, split of Neural-LP and DRUM"),
    "kinship_drum": (["kinship_drum"], ["kinships_drum"], "not stated", "kinship terms, split of Neural-LP and DRUM"),
    "countries_s1": (["countries_s1"], [], "public facts", "countries in regions, easy"),
    "countries_s2": (["countries_s2"], [], "public facts", "countries in regions, harder"),
    "countries_s3": (["countries_s3"], [], "public facts", "countries in regions, hardest"),
    "nell-995": (["nell-995"], [], "not stated", "facts that NELL read on the web, KBGAT's version"),
    "drugmechdb": (["drugmechdb"], [], "CC0 1.0", "mechanisms of drugs, curated by experts"),
}
PAIRS = {
    "fb237": ("fb237", "fb15k-237", "fb15k-237", "CC BY 2.5", "FB15k-237", (1, 2, 3, 4)),
    "wn18rr": ("WN18RR", "wn18rr", "wn18rr", "WordNet", "WN18RR", (1, 2, 3, 4)),
    "nell": ("nell", None, "nell-995", "not stated", "NELL-995", (1, 2, 4)),
}


def main(data: Path) -> None:
    """Write the manifest of the package."""
    manifest: dict[str, Any] = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    graphs = {name: _graph(name, facts) for name, facts in manifest.items()} | {"world": _world()}
    benchmarks = {name: _transductive(*entry) for name, entry in NAMED.items()}
    for prefix, pair in PAIRS.items():
        for version in pair[-1]:
            benchmarks[f"{prefix}:v{version}"] = _inductive(pair, version)
    used = {folder for entry in benchmarks.values() for folder in entry["graphs"]}
    if unnamed := sorted(set(graphs) - used):
        raise SystemExit(f"Give a name to: {', '.join(unnamed)}")
    text = json.dumps({"benchmarks": benchmarks, "graphs": graphs}, indent=1, ensure_ascii=False)
    (PACKAGE / "benchmarks.json").write_text(text + "\n", encoding="utf-8", newline="\n")
    print(f"{len(benchmarks)} benchmarks, {len(graphs)} graphs")


def _transductive(graphs: list[str], aliases: list[str], licence: str, about: str) -> dict[str, Any]:
    return {"graphs": graphs, "aliases": aliases, "licence": licence, "about": about, "names_from": None}


def _inductive(pair: tuple[str, str | None, str, str, str, tuple[int, ...]], version: int) -> dict[str, Any]:
    stem, names_from, parent, licence, title, _ = pair
    return {
        "graphs": [f"{stem}_v{version}", f"{stem}_v{version}_ind"],
        "aliases": [f"{parent}:v{version}"],
        "licence": licence,
        "about": f"GraIL's inductive pair {version} from {title}: tested on new entities",
        "names_from": names_from,
    }


def _graph(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "counts": {key: facts["counts"][key] for key in KEPT_COUNTS},
        "files": {file: entry for file, entry in facts["files"].items() if file not in UNUSED_FILES},
        "source": facts["source"],
        "licence": facts["licence"],
        "download": _download(name),
    }


def _world() -> dict[str, Any]:
    files, triples = {}, {}
    for name in SPLITS:
        content = (PACKAGE / "world" / name).read_bytes()
        triples[name] = [line.split("\t") for line in content.decode().splitlines()]
        digest = hashlib.sha256(content).hexdigest()
        files[name] = {"sha256": digest, "lines": len(triples[name]), "bytes": len(content)}
    rows = [row for part in triples.values() for row in part]
    counts = {"entities": len({end for h, _, t in rows for end in (h, t)}), "relations": len({r for _, r, _ in rows})}
    counts |= {name[:-4]: len(part) for name, part in triples.items()} | {"repeated_in_train": 0}
    source = "GeoNames and CLDR, by scripts/make_world.py; see world/ATTRIBUTION.txt in the package"
    return {"counts": counts, "files": files, "source": source, "licence": "CC BY 4.0", "download": []}


def _download(name: str) -> list[dict[str, Any]]:
    """Where a graph can be fetched, in the order to try."""
    if name == "fb15k-237":
        names = {
            "entity_names.tsv": [f"{ASTARNET}/fb15k237/entity.txt"],
            "relation_names.tsv": [f"{ASTARNET}/fb15k237/relation.txt"],
        }
        return [_archive("FB15k-237.tar.gz"), {"kind": "files", "files": names}]
    if name == "wn18rr":
        texts = {split: f"{VILLMOW}/WN18RR/text/{split}" for split in SPLITS}
        return [_archive("WN18RR.tar.gz"), {"kind": "aligned", "file": "entity_names.tsv", "texts": texts}]
    if name in ("umls", "kinships", "nations"):
        return [_files(f"{PYKEEN}/{name}"), _archive(f"{name.removesuffix('s') if 'kin' in name else name}.tar.gz")]
    if name.startswith("countries_"):
        version = name[-2:].upper()
        return [_files(f"{CONVE}/countries/countries_{version}"), _files(f"{KGDATASETS}/Countries/Countries_{version}")]
    if name in ("family", "umls_drum", "kinship_drum"):
        folder = f"{DRUM}/{name.removesuffix('_drum')}"
        files = {split: [f"{folder}/{split}"] for split in SPLITS}
        files["train.txt"] = [f"{folder}/facts.txt", f"{folder}/train.txt"]
        return [{"kind": "files", "files": files}]
    if name == "nell-995":
        folder = f"{OPENKE}/NELL-995"
        triples = {split: f"{folder}/{split[:-4]}2id.txt" for split in SPLITS}
        ids = {"entities": f"{folder}/entity2id.txt", "relations": f"{folder}/relation2id.txt"}
        return [{"kind": "numbered", "files": triples} | ids]
    if name == "drugmechdb":
        return []
    return [_files(f"{GRAIL}/{name}")]


def _archive(name: str) -> dict[str, Any]:
    return {"kind": "archive", "url": f"{CONVE}/{name}", "files": list(SPLITS)}


def _files(folder: str) -> dict[str, Any]:
    return {"kind": "files", "files": {split: [f"{folder}/{split}"] for split in SPLITS}}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
