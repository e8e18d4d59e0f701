"""`python -m kgcf` is `kgcf`."""

from kgcf.cli import main

if __name__ == "__main__":
    main()
