"""Where `kgcf` and `python -m kgcf` begin: so small that Ctrl-C is quiet while the large libraries are imported."""

from kgcf.machine.interrupts import quiet_interrupts


def main() -> None:
    """Import the command line and run it."""
    quiet_interrupts()
    from kgcf.cli import main as run

    run()


if __name__ == "__main__":
    main()
