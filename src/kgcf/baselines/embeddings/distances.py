"""Distances of B points to all N entities, for ranking: no gradient, and no table [B, N, D].

Entities are taken a few at a time, so that they stay in the cache while all points pass by.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.machine.compiled import reassociated

Rows = NDArray[np.float32]  # [B, D] or [N, D]
_AT_ONCE = 64  # entities


def can_rank(*parts: Tensor) -> bool:
    """Whether these kernels may be used: single precision on the CPU, and nobody asks for a gradient."""
    numbers = (torch.float32, torch.complex64)
    return not torch.is_grad_enabled() and all(p.device.type == "cpu" and p.dtype in numbers for p in parts)


def city_block(points: Tensor, entities: Tensor) -> Tensor:
    """[B, N]: Σ|point − entity|, of [B, D] and [N, D]."""
    found = torch.empty(len(points), len(entities))
    _city_block(_rows(points), _rows(entities), found.numpy())
    return found


def moduli(points: Tensor, entities: Tensor) -> Tensor:
    """[B, N]: Σ of the moduli of point − entity, of complex [B, D] and [N, D]."""
    found = torch.empty(len(points), len(entities))
    _moduli(_rows(points.real), _rows(points.imag), _rows(entities.real), _rows(entities.imag), found.numpy())
    return found


def scaled(points: Tensor, scales: Tensor, entities: Tensor) -> Tensor:
    """[B, N]: ‖point − scale ∘ entity‖₂, of points and scales [B, D] and entities [N, D]."""
    found = torch.empty(len(points), len(entities))
    _scaled(_rows(points), _rows(scales), _rows(entities), found.numpy())
    return found.sqrt_()


def half_angles(points: Tensor, entities: Tensor) -> Tensor:
    """[B, N]: Σ|sin((point − entity) / 2)|, of angles [B, D] and [N, D]; sin(a − b) = sin a cos b − cos a sin b."""
    found = torch.empty(len(points), len(entities))
    (sines, cosines), (others_sines, others_cosines) = (
        (_rows(torch.sin(each / 2)), _rows(torch.cos(each / 2))) for each in (points, entities)
    )
    _half_angles(sines, cosines, others_sines, others_cosines, found.numpy())
    return found


def _rows(part: Tensor) -> Rows:
    return part.contiguous().numpy()


@reassociated
def _city_block(points: Rows, entities: Rows, found: Rows) -> None:
    for first in range(0, len(entities), _AT_ONCE):
        for b in range(len(points)):
            for n in range(first, min(first + _AT_ONCE, len(entities))):
                total = np.float32(0)
                for d in range(points.shape[1]):
                    total += abs(points[b, d] - entities[n, d])
                found[b, n] = total


@reassociated
def _moduli(real: Rows, imaginary: Rows, entities_real: Rows, entities_imaginary: Rows, found: Rows) -> None:
    for first in range(0, len(entities_real), _AT_ONCE):
        for b in range(len(real)):
            for n in range(first, min(first + _AT_ONCE, len(entities_real))):
                total = np.float32(0)
                for d in range(real.shape[1]):
                    across, up = real[b, d] - entities_real[n, d], imaginary[b, d] - entities_imaginary[n, d]
                    total += np.sqrt(across * across + up * up)
                found[b, n] = total


@reassociated
def _scaled(points: Rows, scales: Rows, entities: Rows, found: Rows) -> None:
    for first in range(0, len(entities), _AT_ONCE):
        for b in range(len(points)):
            for n in range(first, min(first + _AT_ONCE, len(entities))):
                total = np.float32(0)
                for d in range(points.shape[1]):
                    difference = points[b, d] - scales[b, d] * entities[n, d]
                    total += difference * difference
                found[b, n] = total


@reassociated
def _half_angles(sines: Rows, cosines: Rows, entities_sines: Rows, entities_cosines: Rows, found: Rows) -> None:
    for first in range(0, len(entities_sines), _AT_ONCE):
        for b in range(len(sines)):
            for n in range(first, min(first + _AT_ONCE, len(entities_sines))):
                total = np.float32(0)
                for d in range(sines.shape[1]):
                    total += abs(sines[b, d] * entities_cosines[n, d] - cosines[b, d] * entities_sines[n, d])
                found[b, n] = total
