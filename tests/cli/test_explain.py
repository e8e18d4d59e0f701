import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import kgcf
from kgcf.cli.explain import explain_command
from kgcf.cli.predict import predict_command
from kgcf.cli.rules import rules_command
from kgcf.errors import SettingsError, UnknownNameError
from kgcf.explanation.how import How
from kgcf.pipeline import fit
from tests.training.tiny import TINY, dataset

app = typer.Typer()
app.command("explain")(explain_command)
predicting = typer.Typer()
predicting.command("predict")(predict_command)
ruling = typer.Typer()
ruling.command("rules")(rules_command)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    fit(dataset(), folder, changes=[*TINY, "training.epochs=1", "training.threads=1", "space.walks=2"])
    return folder


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "plain"
    fit(dataset(), folder, preset="nbfnet", changes=[*TINY, "training.epochs=1", "training.threads=1"])
    return folder


def explain(*arguments: str | Path, command: typer.Typer = app) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def a_triple() -> list[str]:
    data = dataset()
    h, r, t = data.test.queries[0].tolist()
    return [str(h), data.relations.label(r), str(t)]


def test_text_json_page_and_picture(run: Path, tmp_path: Path) -> None:
    text = explain(run, *a_triple(), "--html", tmp_path / "page.html", "--png", tmp_path / "paths.png").stdout
    assert "it was hidden before asking" in text  # everything that was given is observed
    for word in ("T^F", "T^CF", "logit", "ITE", "treatment"):
        assert word not in text
    assert "Compared: " in text
    assert "How sure: " in text
    detailed = explain(run, *a_triple(), "--detail").stdout
    assert "Having the same role changes the probability by" in detailed
    found = json.loads(explain(run, *a_triple(), "--json").stdout)
    assert f"probability {found['probability']:.3f}." in text
    assert "asked for the" not in text
    made = f"({found['probability_from']} of logit {found['logit']:.3f}, asked for the head)"
    assert made.replace("head", "tail") in detailed
    for path in found["paths"]:
        assert path["edges"][0]["head"]["label"] == a_triple()[0]
        assert path["edges"][-1]["tail"]["label"] == a_triple()[2]
    assert "cytoscape" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "paths.png").read_bytes().startswith(b"\x89PNG")


def test_options_reach_the_explanation(run: Path) -> None:
    everything = json.loads(explain(run, *a_triple(), "--json").stdout)
    train = json.loads(explain(run, *a_triple(), "--json", "--observed", "train").stdout)
    assert everything["known"]
    assert not train["known"]
    gradient = ("--json", "--attribution", "gradient")
    heaviest = json.loads(explain(run, *a_triple(), *gradient).stdout)
    one = json.loads(explain(run, *a_triple(), *gradient, "--top", "1", "--weighting", "sum").stdout)
    assert len(one["paths"]) == 1
    assert one["weighting"] == "sum"
    summed = json.loads(explain(run, *a_triple(), *gradient, "--layers", "all").stdout)
    assert summed["layers"] == "all"
    assert [path["weight"] for path in summed["paths"]] != [path["weight"] for path in one["paths"]]
    integrated = json.loads(explain(run, *a_triple(), "--json", "--attribution", "integrated").stdout)
    assert integrated["attribution"] == "integrated"
    assert [path["weight"] for path in integrated["paths"]] != [path["weight"] for path in heaviest["paths"]]
    few = json.loads(explain(run, *a_triple(), "--json", "--candidates", "1").stdout)
    assert everything["attribution"] == few["attribution"] == "removal"
    assert 0 < few["tried"] <= 3
    head = json.loads(explain(run, *a_triple(), *gradient, "--asked", "head").stdout)
    assert head["asked"] == "head"
    assert head["paths"][0]["edges"][0]["head"]["label"] == a_triple()[2]


def test_another_graph_with_new_entities(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.tsv"
    file.write_text("Ada\tparent\tBob\nBob\tparent\tCal\nBob\tfriend\tDee\nAda\tfriend\tDee\n", encoding="utf-8")
    options = ("--json", "--attribution", "gradient", "--graph", file)
    found = json.loads(explain(run, "Ada", "grandparent", "Cal", *options).stdout)
    names = [[edge["tail"]["name"] for edge in path["edges"]] for path in found["paths"]]
    assert ["Bob", "Cal"] in names
    assert found["counterfactual"] is not None


def test_a_model_without_treatment(plain_run: Path) -> None:
    assert "This model has no treatment" in explain(plain_run, *a_triple(), "--detail").stdout
    assert "trained without comparing pairs" in explain(plain_run, *a_triple()).stdout
    assert json.loads(explain(plain_run, *a_triple(), "--json").stdout)["counterfactual"] is None


def test_mistakes_are_sentences(run: Path, tmp_path: Path) -> None:
    head, _, tail = a_triple()
    with pytest.raises(UnknownNameError, match="There is no relation called 'granparent'. Did you mean 'grandparent'"):
        explain(run, head, "granparent", tail)
    with pytest.raises(SettingsError, match=".png"):
        explain(run, *a_triple(), "--png", tmp_path / "paths.svg")
    assert explain(run, *a_triple(), "--top", "0").exit_code == 2


def predict(*arguments: str | Path) -> Result:
    return explain(*arguments, command=predicting)


def test_predict_shows_why(run: Path) -> None:
    head, relation, tail = a_triple()
    for given in ((head, relation, "?"), ("?", relation, tail), (head, "?", tail)):
        options = [word for name, text in zip(PARTS, given, strict=True) for word in (name, text)]
        asked = [*options, "--observed", "train", "--top", "2"]
        plain = json.loads(predict(run, *asked, "--json").stdout)
        found = json.loads(predict(run, *asked, "--explain", "--json").stdout)
        text = predict(run, *asked, "--paths", "1").stdout
        detailed = predict(run, *asked, "--detail").stdout
        assert [{key: item[key] for key in answer} for item, answer in zip(found, plain, strict=True)] == plain
        for item in found:
            why = item["explanation"]
            assert why["probability"] == pytest.approx(item["probability"], abs=1e-5)
            assert len(why["paths"]) <= 3
            assert f"{item['rank']}. {item['head']} —{item['relation']}→ {item['tail']}" in text
            assert f"probability {item['probability']:.4f}" in text
            made = f"probability {item['probability']:.4f} ({item['probability_from']} of logit {item['logit']:.3f})"
            assert made in detailed
        assert "logit" not in text
        one = json.loads(predict(run, *asked, "--paths", "1", "--json").stdout)
        assert text.count("   because ") == sum(bool(item["explanation"]["paths"]) for item in one)
        assert detailed.count("T = ") >= len(found)
        heaviest = json.loads(predict(run, *asked, "--attribution", "gradient", "--json").stdout)
        assert {item["explanation"]["attribution"] for item in heaviest} == {"gradient"}


PARTS = ("--head", "--relation", "--tail")


def test_predict_explains_known_answers_without_themselves(run: Path) -> None:
    head, relation, tail = a_triple()
    only = run.parent / "only.txt"
    only.write_text(f"{tail}\n", encoding="utf-8")
    text = predict(run, "--head", head, "--relation", relation, "--known", "--candidates", only, "--explain").stdout
    alone = kgcf.open(run).explain(head, relation, tail)
    assert f"explained as if it were not known: probability {alone.probability:.4f}" in text


def test_without_rules_a_sentence_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgcf.explanation.necessity.LEAST", 100.0)  # nothing moves the score by so much
    done = explain(run, "--answers", "2", command=ruling)
    assert "none of the answers that were explained has a path that matters" in " ".join(done.stderr.split())
    assert done.stdout.count("\n") == 1  # the titles: programs read a table without rows


def test_in_detail_too_a_path_that_raises_the_score_is_not_for_the_answer(run: Path) -> None:
    head, relation, _ = a_triple()
    asked = ("--head", head, "--relation", relation, "--attribution", "gradient", "--paths", "20", "--top", "5")
    lines = predict(run, *asked, "--detail").stdout.splitlines()
    drops = {
        kind: [float(line.split("drop ")[1].split(",")[0]) for line in lines if line.startswith(f"   {kind} drop")]
        for kind in ("for", "against")
    }
    assert min(drops["for"], default=0) >= 0
    assert drops["against"]
    assert max(drops["against"]) <= 0


def test_rules_as_table_and_json(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgcf.explanation.necessity.LEAST", -100.0)  # hardly trained, the model has no reasons
    options = ("--relation", "grandparent", "--answers", "30", "--top", "3", "--seed", "1")
    found = json.loads(explain(run, *options, "--json", command=ruling).stdout)
    rules = kgcf.open(run).rules("grandparent", answers=30, top=3, seed=1)
    assert found == json.loads(json.dumps([rule.to_json() for rule in rules]))
    assert 0 < len(found) <= 3
    assert all(rule["relation"]["label"] == "grandparent" and rule["explained"] <= 30 for rule in found)
    header, *rows = explain(run, *options, command=ruling).stdout.splitlines()
    assert header.split("\t") == ["rule", "answers", "of", "mean drop", "confidence", "pairs", "examples"]
    assert [row.split("\t")[0] for row in rows] == [rule["rule"] for rule in found]
    with pytest.raises(UnknownNameError, match="granparent"):
        explain(run, "--relation", "granparent", command=ruling)


def test_run_explains_what_the_command_explains(run: Path) -> None:
    opened = kgcf.open(run)
    how = How(asked="head", weighting="sum", layers="all", attribution="gradient")
    found = opened.explain(*a_triple(), how=how, top=2, observed="train")
    options = (
        "--attribution",
        "gradient",
        "--observed",
        "train",
        "--asked",
        "head",
        "--weighting",
        "sum",
        "--layers",
        "all",
        "--top",
        "2",
    )
    assert json.loads(json.dumps(found.to_json())) == json.loads(explain(run, *a_triple(), *options, "--json").stdout)
    (answer,) = opened.predict(a_triple()[0], a_triple()[1], top=1, candidates=[a_triple()[2]], observed="train")
    own = opened.explain(*a_triple(), observed="train")
    assert own.probability == pytest.approx(answer.probability, abs=1e-5)
    assert own.probability_from == answer.probability_from
