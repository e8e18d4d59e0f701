"""Benchmarks by name: aliases, lookup order, checks, downloads; and every one of them as published."""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from kgcf.data import locations, registry
from kgcf.data.download import DownloadError
from kgcf.data.locations import Location, cache_folder, find_graph, list_locations
from kgcf.data.manifest import Benchmark, benchmark, benchmarks, graph
from kgcf.errors import DataError, UnknownNameError
from tests.homes import Home, graph_facts, serving

FILES = {"train.txt": b"a\tr\tb\nb\tr\tc\nb\tr\tc\n", "valid.txt": b"a\tr\tc\n", "test.txt": b"c\tr\ta\n"}
NAMES = {"entity_names.tsv": b"a\tAlpha\nb\tBeta\nz\tOmega\n"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No benchmark files but those that the test puts into `data` (KGCF_DATA) or `cache` (KGCF_CACHE)."""
    monkeypatch.setenv("KGCF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KGCF_CACHE", str(tmp_path / "cache"))
    for module in (registry, locations):
        monkeypatch.setattr(
            module,
            "list_locations",
            lambda root=None: [p for p in list_locations(root) if tmp_path in (p.path, *p.path.parents)],
        )
    return tmp_path


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        yield running


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def known_as(monkeypatch: pytest.MonkeyPatch, *graphs: object, names_from: str | None = None) -> None:
    """Make the registry know one benchmark, `tiny`, of these graphs."""
    tiny = Benchmark("tiny", graphs, (), "none", "a test", names_from)  # type: ignore[arg-type]
    for module in (registry, locations):
        monkeypatch.setattr(module, "benchmark", lambda _: tiny)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("FB15k237", "fb15k-237"),
        ("fb15k_237", "fb15k-237"),
        ("WN18RR", "wn18rr"),
        ("WN18RR_v1", "wn18rr:v1"),
        ("wn18rr-v4", "wn18rr:v4"),
        ("fb15k-237:v1", "fb237:v1"),
        ("FB237_v3", "fb237:v3"),
        ("NELL-995:v2", "nell:v2"),
        ("nell995", "nell-995"),
        ("Kinship", "kinships"),
        ("World", "world"),
    ],
)
def test_aliases(text: str, name: str) -> None:
    assert registry.is_known(text)
    assert benchmark(text).name == name


def test_aliases_are_unambiguous() -> None:
    for name, entry in benchmarks().items():
        for alias in (*entry.aliases, entry.graphs[0].name):
            assert benchmark(alias).name == name or alias in benchmarks()


def test_an_unknown_name_gets_suggestions() -> None:
    assert not registry.is_known("wn18rrr")
    with pytest.raises(UnknownNameError, match=r"no benchmark called 'wn18rrr'\. Did you mean 'wn18rr'"):
        registry.load("wn18rrr")


def test_every_graph_is_described() -> None:
    for entry in benchmarks().values():
        assert entry.about
        assert entry.licence
        for facts in entry.graphs:
            assert facts.files["train.txt"].lines == facts.train
            assert facts.files["test.txt"].lines == facts.test
            assert len(facts.files["valid.txt"].sha256) == 64
            assert facts.source
    assert [name for name, entry in benchmarks().items() if not entry.downloadable] == ["world", "drugmechdb"]


def test_the_order_of_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KGCF_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("KGCF_CACHE", str(tmp_path / "cache"))
    assert list_locations() == [
        Location("$KGCF_DATA", tmp_path / "mine"),
        Location("cache", tmp_path / "cache" / "data"),
    ]
    assert list_locations(tmp_path / "only") == [Location(str(tmp_path / "only"), tmp_path / "only")]
    monkeypatch.delenv("KGCF_DATA")
    assert list_locations() == [Location("cache", tmp_path / "cache" / "data")]


def test_the_first_complete_place_wins(tmp_path: Path) -> None:
    among = [Location(name, tmp_path / name) for name in ("first", "second", "third")]
    facts = graph("nations")
    assert find_graph(facts, among) is None
    put(tmp_path / "first" / "nations", {"train.txt": b""})  # incomplete
    for name in ("second", "third"):
        put(tmp_path / name / "nations", {"train.txt": b"", "valid.txt.gz": b"", "test.txt": b""})
    assert find_graph(facts, among) == (among[1], tmp_path / "second" / "nations")


def test_the_cache_follows_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("KGCF_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("KGCF_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "kgcf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == platformdirs.user_cache_path("kgcf", appauthor=False)
    assert cache_folder().is_relative_to(tmp_path)


def test_load_reads_checks_and_names(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, graph_facts("g", FILES | NAMES, []))
    put(alone / "data" / "g", FILES | NAMES)
    data = registry.load("tiny")
    assert data.name == "tiny"
    assert (len(data.graph), len(data.valid), len(data.test)) == (2, 1, 1)
    assert data.entities.display(data.entities.id("a")) == "Alpha"
    assert data.notes == ("1 repeated triple of train left out",)
    found = registry.locate("tiny")
    assert found is not None
    assert found.title == "$KGCF_DATA"


def test_a_wrong_file_is_named_with_what_was_expected_and_found(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = graph_facts("g", FILES, [])
    known_as(monkeypatch, facts)
    put(alone / "data" / "g", FILES | {"valid.txt": b"a\tr\tb\n"})
    expected = facts.files["valid.txt"].sha256
    with pytest.raises(
        DataError, match=rf"g/valid\.txt is not the file .* expected sha256 {expected} .* found [0-9a-f]"
    ):
        registry.load("tiny")


def test_a_cut_file_is_a_sentence(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, graph_facts("g", FILES, []))
    packed = {f"{name}.gz": gzip.compress(content) for name, content in FILES.items()}
    put(alone / "data" / "g", packed | {"test.txt.gz": packed["test.txt.gz"][:-6]})
    with pytest.raises(DataError, match=r"test\.txt\.gz is damaged or cut short"):
        registry.load("tiny")


def test_files_with_other_counts_are_refused(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = graph_facts("g", FILES, [])
    object.__setattr__(facts, "entities", 4)
    known_as(monkeypatch, facts)
    put(alone / "data" / "g", FILES)
    with pytest.raises(DataError, match="4 entities expected, 3 found"):
        registry.load("tiny")


def test_files_that_are_nowhere(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, graph_facts("g", FILES, []))
    with pytest.raises(DataError) as caught:
        registry.load("tiny")
    said = str(caught.value)
    assert said.startswith("The files of g are not at hand. Put train.txt, valid.txt and test.txt (plain or .gz) into ")
    assert str(alone / "data" / "g") in said
    assert str(alone / "cache" / "data" / "g") in said
    assert registry.locate("tiny") is None
    assert not registry.at_hand("tiny")


def test_load_fetches_into_the_cache(alone: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    step: dict[str, object] = {"kind": "files", "files": {name: [f"{home.url}/{name}"] for name in FILES}}
    known_as(monkeypatch, graph_facts("g", FILES, [step]))
    home.content |= {f"/{name}": content for name, content in FILES.items()}
    monkeypatch.setenv("KGCF_OFFLINE", "1")
    with pytest.raises(DataError, match="are not at hand"):
        registry.load("tiny")
    assert home.asked == []
    monkeypatch.setenv("KGCF_OFFLINE", "0")
    assert len(registry.load("tiny").graph) == 2
    assert len(home.asked) == 3
    assert len(registry.load("tiny").graph) == 2
    assert len(home.asked) == 3
    found = registry.locate("tiny")
    assert found == Location("cache", alone / "cache" / "data")


def test_load_says_what_went_wrong_and_where_files_go(alone: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    step: dict[str, object] = {"kind": "files", "files": {name: [f"{home.url}/{name}"] for name in FILES}}
    known_as(monkeypatch, graph_facts("g", FILES, [step]))
    for attempt in (registry.load, registry.get):
        with pytest.raises(DownloadError, match=r"could not be downloaded\..*answered 404.* Put train\.txt.* into "):
            attempt("tiny")


def test_get_copies_what_is_at_hand(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, graph_facts("g", FILES | NAMES, []))
    put(alone / "data" / "g", FILES | NAMES)
    folders, notes = registry.get("tiny", alone / "there")
    assert folders == [alone / "there" / "g"]
    assert notes == []
    assert {p.name: p.read_bytes() for p in folders[0].iterdir()} == FILES | NAMES
    shutil.rmtree(alone / "data")
    assert len(registry.load("tiny", data_root=alone / "there").graph) == 2


def test_get_of_the_embedded_graph() -> None:
    folders, notes = registry.get("world")
    assert (folders[0] / "train.txt").is_file()
    assert "ships in the package" in notes[0]


def test_data_root_is_the_only_place(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, graph_facts("g", FILES, []))
    put(alone / "data" / "g", FILES)
    with pytest.raises(DataError, match=r"elsewhere/g"):
        registry.load("tiny", data_root=alone / "elsewhere")


def test_an_inductive_pair_with_its_parents_names(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = {"train.txt": b"x\tr\ty\n", "valid.txt": b"y\tr\tx\n", "test.txt": b"x\tr\tz\n"}
    parent = graph_facts("p", FILES | NAMES, [])
    known_as(monkeypatch, graph_facts("g", FILES, []), graph_facts("g_ind", new, []), names_from="p")
    monkeypatch.setattr(registry, "graph", lambda _: parent)
    put(alone / "data" / "g", FILES)
    put(alone / "data" / "g_ind", new)
    assert registry.load("tiny").entities.names == {}
    put(alone / "data" / "p", NAMES)
    data = registry.load("tiny")
    assert data.inductive
    assert data.entities.names == {"a": "Alpha", "b": "Beta"}
    assert data.test.entities.names == {"z": "Omega"}
    assert data.valid.entities is data.train.entities


@pytest.mark.benchmark
@pytest.mark.parametrize("name", registry.names())
def test_every_benchmark_loads_with_its_published_counts(name: str) -> None:
    data, facts = registry.load(name), benchmark(name)
    first, last = facts.graphs[0], facts.graphs[-1]
    assert data.name == name
    assert data.inductive == facts.inductive
    assert len(data.graph) == first.train - first.repeated_in_train
    assert (len(data.entities), len(data.relations)) == (first.entities, first.relations)
    assert (len(data.valid), len(data.test)) == (first.valid, last.test)
    if facts.inductive:
        assert len(data.test.observed) == last.train
        assert len(data.test.known) == last.train + last.valid + last.test


@pytest.mark.benchmark
def test_names_of_benchmarks() -> None:
    freebase = registry.load("fb15k-237")
    assert len(freebase.entities.names) == 14_541
    assert freebase.entities.display(freebase.entities.id("/m/010016")) == "Denton, Texas (Q128306)"
    assert freebase.relations.id("form of government") == 0
    with pytest.raises(UnknownNameError, match=r"'current roster - position' is ambiguous: it names /"):
        freebase.relations.id("current roster - position")
    wordnet = registry.load("wn18rr")
    assert wordnet.entities.label(wordnet.entities.id("physical_entity.n.01")) == "00001930"
    pair = registry.load("wn18rr:v1")
    assert len(pair.entities.names) == 2_746
    assert len(pair.test.entities.names) == 922
    assert registry.load("fb237:v2").relations.names
    drugs = registry.load("drugmechdb")
    assert drugs.entities.display(drugs.entities.id("CHEBI:15343")) == "acetaldehyde"


@pytest.mark.benchmark
def test_extra_files_are_found_and_checked() -> None:
    found = registry.find_extra("drugmechdb", "mechanisms.tsv")
    assert found is not None
    assert found.name.startswith("mechanisms.tsv")
    with pytest.raises(DataError, match=r"has no file nothing\.tsv; it has train\.txt"):
        registry.find_extra("drugmechdb", "nothing.tsv")


@pytest.mark.benchmark
def test_a_damaged_copy_of_a_benchmark_is_refused(tmp_path: Path) -> None:
    registry.get("nations", tmp_path)
    registry.load("nations", data_root=tmp_path)
    path = tmp_path / "nations" / "train.txt.gz"
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content.replace(b"usa", b"uk", 1)))
    with pytest.raises(DataError, match=r"nations/train\.txt\.gz is not the file that kgcf knows as part of nations"):
        registry.load("nations", data_root=tmp_path)
