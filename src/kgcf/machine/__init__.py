"""The machine underneath: compiled loops, devices, memory, Ctrl-C, and facts about where numbers come from."""
