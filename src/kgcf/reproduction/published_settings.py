"""The baselines' hyper-parameters as their own codes state them for FB15k-237 and WN18RR, as far as ours have them.

Not here, because our training differs in more than numbers: DistMult and ComplEx (published with sampled negatives and
an L3 penalty, or with Adagrad), Path Ranking (no code), RGCN on WN18RR (no script). What our settings do not have is
left out: the smaller learning rate of the second half (TransE, RotatE, HAKE) or of every epoch (ConvE), weights by
frequency, an encoder whose layers differ in width (CompGCN: the last one is taken).
"""

_TRAIN_TRIPLES = {"fb15k-237": 272_115, "wn18rr": 86_835}
_GNN = "epochs=500 batch_size=256 learning_rate=0.001 label_smoothing=0.1"  # of all graph networks
_RULES = "epochs=10 batch_size=64 learning_rate=0.001 hidden=128 length=3"
_CONVE = "epochs=1000 batch_size=128 learning_rate=0.003 label_smoothing=0.1 dimension=200 filters=32 kernel=3 "
_CONVE += "input_dropout=0.2 feature_dropout=0.2 hidden_dropout=0.3"
_FB_DISTANCE = "steps=100000 batch_size=1024 negatives=256 dimension=1000 margin=9.0 temperature=1.0 learning_rate=5e-5"
_WN_DISTANCE = "steps=80000 batch_size=512 negatives=1024 dimension=500 margin=6.0 temperature=0.5 learning_rate=5e-5"
_FB_TENSOR = "epochs=500 batch_size=128 learning_rate=5e-4 label_smoothing=0.1 dimension=200 relation_dimension=200 "
_FB_TENSOR += "head_dropout=0.3 output_dropout=0.5"
_WN_TENSOR = "epochs=500 batch_size=128 learning_rate=3e-3 label_smoothing=0.1 dimension=200 relation_dimension=30 "
_WN_TENSOR += "head_dropout=0.2 output_dropout=0.3"
_TRAINING = ("epochs", "batch_size", "learning_rate")

STATED: dict[str, dict[str, str]] = {
    "fb15k-237": {
        "neurallp": _RULES,
        "drum": f"{_RULES} rank=3",
        "transe": _FB_DISTANCE,
        "rotate": _FB_DISTANCE,
        "hake": f"{_FB_DISTANCE} modulus_weight=3.5 phase_weight=1.0",
        "lowfer": f"{_FB_TENSOR} product_dropout=0.4 rank=100",
        "tucker": f"{_FB_TENSOR} relation_dropout=0.4",
        "conve": _CONVE,
        "rgcn-transe": f"{_GNN} dimension=150 blocks=5 layers=1 margin=9.0",
        "rgcn-distmult": f"{_GNN} dimension=150 blocks=5 layers=1",
        "rgcn-conve": f"{_GNN} dimension=128 blocks=8 layers=1 filters=200 kernel=7",
        "compgcn-transe": f"{_GNN} dimension=200 layers=1 margin=9.0",
        "compgcn-distmult": f"{_GNN} dimension=200 layers=2",
        "compgcn-conve": f"{_GNN} dimension=200 layers=1 filters=200 kernel=7",
        "lte-transe": f"{_GNN} dimension=200 operations=p",
        "lte-distmult": f"{_GNN} dimension=200 operations=p.b.d",
        "lte-conve": f"{_GNN} dimension=200 operations=p.b.d filters=200 kernel=7",
    },
    "wn18rr": {
        "neurallp": _RULES,
        "drum": f"{_RULES} rank=3",
        "transe": _WN_DISTANCE,
        "rotate": _WN_DISTANCE,
        "hake": f"{_WN_DISTANCE} modulus_weight=0.5 phase_weight=0.5",
        "lowfer": f"{_WN_TENSOR} product_dropout=0.2 rank=30",
        "tucker": f"{_WN_TENSOR} relation_dropout=0.2",
        "conve": _CONVE,
        "compgcn-transe": f"{_GNN} dimension=100 layers=1 encoder_dropout=0.2",
        "compgcn-distmult": f"{_GNN} dimension=200 layers=1",
        "compgcn-conve": f"{_GNN} dimension=200 layers=1 filters=250 kernel=7 encoder_dropout=0.2 "
        "hidden_dropout=0.4 feature_dropout=0.1",
        "lte-transe": f"{_GNN} dimension=100 operations=p",
        "lte-distmult": f"{_GNN} dimension=200 operations=p.b.d",
        "lte-conve": f"{_GNN} dimension=200 operations=p.b.d filters=250 kernel=7",
    },
}


def published_settings(dataset: str, model: str) -> tuple[str, ...]:
    """The changes that make a model the published one on a graph; none where nothing usable is stated."""
    stated = STATED.get(dataset, {}).get(model)
    if stated is None:
        return ()
    values = dict(part.split("=") for part in stated.split())
    if "steps" in values:  # batches of train triples, as epochs
        triples = int(values.pop("steps")) * int(values["batch_size"])
        values["epochs"] = str(round(triples / _TRAIN_TRIPLES[dataset]))
    return tuple(f"{'training' if key in _TRAINING else 'baseline'}.{key}={value}" for key, value in values.items())
