"""The explorer: pages and their JSON twins to ask a run, see why, and judge what it proposes; `kgcf serve`."""
