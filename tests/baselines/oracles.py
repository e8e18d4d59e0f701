"""Score functions and encoders written out, one number at a time, from the weights of a model."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kgcf.baselines.embeddings.pykeen_model import PykeenBaseline
from kgcf.data.graph import KnowledgeGraph

Vector = NDArray[Any]
Score = Callable[[PykeenBaseline, int, int, int], float]  # model, head, relation (may be inverse), tail
_EPSILON = 1e-5  # of torch's batch norms


def plain(tensor: Tensor) -> Vector:
    return tensor.detach().cpu().numpy()


def entity(baseline: PykeenBaseline, number: int, part: int = 0) -> Vector:
    return plain(baseline.model.entity_representations[part]()[number])


def relation(baseline: PykeenBaseline, number: int, part: int = 0) -> Vector:
    return plain(baseline.model.relation_representations[part]()[baseline.scheme.order[number]])


def turned(baseline: PykeenBaseline, head: int, number: int, tail: int) -> tuple[int, int, int]:
    """Models without inverse relations answer (t, r + R, ?) by the heads of (?, r, t)."""
    count = baseline.scheme.relation_count
    return (tail, number - count, head) if number >= count else (head, number, tail)


def transe(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    head, number, tail = turned(baseline, head, number, tail)
    h, r, t = entity(baseline, head), relation(baseline, number), entity(baseline, tail)
    return baseline.scheme.offset - float(sum(abs(h[i] + r[i] - t[i]) for i in range(len(h))))


def rotate(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    head, number, tail = turned(baseline, head, number, tail)
    h, r, t = entity(baseline, head), relation(baseline, number), entity(baseline, tail)
    assert np.allclose(np.abs(r), 1.0)
    return baseline.scheme.offset - float(sum(abs(h[i] * r[i] - t[i]) for i in range(len(h))))


def hake(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    head, number, tail = turned(baseline, head, number, tail)
    (h_m, h_p), (t_m, t_p) = ([entity(baseline, e, part) for part in (0, 1)] for e in (head, tail))
    r_m, bias, r_p = (relation(baseline, number, part) for part in (0, 1, 2))
    square, phases = 0.0, 0.0
    for i in range(len(h_m)):
        modulus = abs(r_m[i])
        b = max(min(bias[i], 1.0), -modulus)
        square += (h_m[i] * (modulus + b) - t_m[i] * (1 - b)) ** 2
        phases += abs(math.sin((h_p[i] + r_p[i] - t_p[i]) / 2))
    weights = baseline.model.interaction
    modulus, phase = (float(plain(w)[0]) for w in (weights.modulus_weight, weights.phase_weight))
    return baseline.scheme.offset - modulus * math.sqrt(square) - phase * phases


def distmult(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    h, r, t = entity(baseline, head), relation(baseline, number), entity(baseline, tail)
    return float(sum(h[i] * r[i] * t[i] for i in range(len(h))))


def complex_(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    h, r, t = entity(baseline, head), relation(baseline, number), entity(baseline, tail)
    return float(sum((h[i] * r[i] * t[i].conjugate()).real for i in range(len(h))))


def shifted(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    h, r, t = entity(baseline, head), relation(baseline, number), entity(baseline, tail)
    return float(baseline.model.interaction.margin - sum(abs(h[i] + r[i] - t[i]) for i in range(len(h))))


def normed(norm: Any, value: Vector) -> Vector:
    """A batch norm with its running mean and variance; channels come first."""
    mean, variance, weight, bias = (plain(p) for p in (norm.running_mean, norm.running_var, norm.weight, norm.bias))
    shape = (-1,) + (1,) * (value.ndim - 1)
    scaled = (value - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + _EPSILON)
    return np.asarray(scaled * weight.reshape(shape) + bias.reshape(shape))


def tucker(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    layer = baseline.model.interaction
    h = normed(layer.head_batch_norm, entity(baseline, head))
    r, t, core = relation(baseline, number), entity(baseline, tail), plain(layer.core_tensor)
    joint = np.zeros(len(h))
    for i in range(len(h)):
        for j in range(len(r)):
            for k in range(len(t)):
                joint[k] += core[i, j, k] * h[i] * r[j]
    return float(normed(layer.head_relation_batch_norm, joint) @ t)


def lowfer(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    layer = baseline.model.interaction
    h, r = normed(layer.head_norm, entity(baseline, head)), relation(baseline, number)
    u, v, width = plain(layer.head_factors), plain(layer.relation_factors), len(h)
    pooled = np.zeros(width)
    for d in range(width):
        for k in range(layer.rank):
            column = d * layer.rank + k
            pooled[d] += (u[:, column] @ h) * (v[:, column] @ r)
    rooted = np.sign(pooled) * np.sqrt(np.abs(pooled))
    return float(normed(layer.output_norm, rooted / np.linalg.norm(rooted)) @ entity(baseline, tail))


def conve(baseline: PykeenBaseline, head: int, number: int, tail: int) -> float:
    """Stack h and r, convolve, flatten, project; then the product with t and t's own offset."""
    layer = baseline.model.interaction
    shape, (first, _, convolution, second, *_) = layer.shape_info, layer.hr2d
    linear, _, last, _ = layer.hr1d
    image = np.concatenate(
        [v.reshape(shape.image_height, shape.image_width) for v in (entity(baseline, head), relation(baseline, number))]
    )
    image = normed(first, image[None])[0]
    filters, offsets = plain(convolution.weight)[:, 0], plain(convolution.bias)
    size = filters.shape[1]
    height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
    maps = np.zeros((len(filters), height, width))
    for f in range(len(filters)):
        for y in range(height):
            for x in range(width):
                maps[f, y, x] = (filters[f] * image[y : y + size, x : x + size]).sum() + offsets[f]
    flat = np.maximum(normed(second, maps), 0).reshape(-1)
    hidden = np.maximum(normed(last, plain(linear.weight) @ flat + plain(linear.bias)), 0)
    return float(hidden @ entity(baseline, tail) + entity(baseline, tail, 1))


def rgcn(baseline: PykeenBaseline, graph: KnowledgeGraph) -> Vector:
    """[N, D] one layer: own vector, and along each edge, in both directions, its relation's blocks over |N_k(i)|."""
    encoder = baseline.model.entity_representations[0].encoder
    base = plain(baseline.model.entity_representations[0].base())
    (matrices,), (own,) = encoder.matrices, encoder.own
    result = base @ plain(own.weight).T + plain(own.bias)
    edges = [edge for h, r, t in graph.triples.tolist() for edge in ((h, r, t), (t, r + graph.relation_count, h))]
    for source, k, target in edges:
        alike = sum(1 for _, r, t in edges if (r, t) == (k, target))
        blocks = plain(matrices)[k]
        parts = base[source].reshape(len(blocks), -1)
        result[target] += np.concatenate([parts[i] @ blocks[i] for i in range(len(blocks))]) / alike
    return np.asarray(np.tanh(result))


def compgcn(baseline: PykeenBaseline, graph: KnowledgeGraph) -> tuple[Vector, Vector]:
    """[N, D], [2R, D] one layer: tanh(BN((messages along, against, own) / 3)); messages are products with relations."""
    encoder = baseline.model.entity_representations[0].combined
    (layer,) = encoder.layers
    x, r = plain(encoder.entity_representations()), plain(encoder.relation_representations())
    weights = {name: plain(getattr(layer, name)) for name in ("w_loop", "w_fwd", "w_bwd", "self_loop")}
    total = (x * weights["self_loop"]) @ weights["w_loop"]
    out, into = (np.bincount(graph.triples[:, column], minlength=len(x)) for column in (0, 2))
    for h, k, t in graph.triples.tolist():
        share = 1 / math.sqrt(out[h] * into[t])
        total[t] += share * (x[h] * r[2 * k]) @ weights["w_fwd"]
        total[h] += share * (x[t] * r[2 * k + 1]) @ weights["w_bwd"]
    total = total / 3
    if layer.bias is not None:
        total = total + plain(layer.bias.bias)
    return np.tanh(np.stack([normed(layer.bn, row) for row in total])), r @ plain(layer.w_rel.weight).T


def lte(baseline: PykeenBaseline) -> Vector:
    """[N, D] a projection and, where it has one, a batch norm."""
    encoder = baseline.model.entity_representations[0]
    projection, *others = encoder.encoder
    moved = plain(encoder.base()) @ plain(projection.weight).T
    return np.stack([normed(others[0], row) for row in moved]) if others else moved
