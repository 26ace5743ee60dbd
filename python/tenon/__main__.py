"""`python -m tenon` is the command `tenon`."""

from .command_line import main

if __name__ == "__main__":
    main()
