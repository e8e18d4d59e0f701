"""Starlette's test client; it is told to be quiet about the successor of httpx, which is not at hand everywhere."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["TestClient"]
