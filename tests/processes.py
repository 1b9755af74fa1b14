"""Processes that tests start: forked from one that has imported lmlab, so that torch is imported once and not by each."""

from __future__ import annotations

import multiprocessing
import os
import sys

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["lmlab.learn.train", "lmlab.comparison.work"])
THIS_CODE = {"PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))}  # for processes of another folder
