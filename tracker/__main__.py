"""`python -m tracker` is the command `tracker`."""

from tracker.cli import main

if __name__ == "__main__":
    main()
