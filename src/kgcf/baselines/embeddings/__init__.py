"""Embeddings and graph networks in PyKEEN's scheme: its models, interactions and training loops."""

import logging
import os

from kgcf.data.locations import cache_folder

# Before anything here imports PyKEEN: where it keeps files, and that it need not tell of seeds and memory, which are
# our business.
os.environ.setdefault("PYKEEN_HOME", str(cache_folder() / "pykeen"))
logging.getLogger("pykeen").setLevel(logging.CRITICAL)
