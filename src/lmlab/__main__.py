"""`python -m lmlab` is `lmlab`."""

from lmlab.cli.app import main

if __name__ == "__main__":
    main()
