"""The names of `lmlab`, each registered by one line that says where it is defined.

Type checkers and editors read this file. So does `lmlab/__init__.py`, which imports a module when one of its names is used.
"""

from lmlab.comparison import compare as compare
from lmlab.comparison.finished_runs import compare_runs as compare_runs
from lmlab.compression.verbs import compress as compress
from lmlab.compression.verbs import decompress as decompress
from lmlab.config import Mistake as Mistake
from lmlab.costs.asked_count import count as count
from lmlab.costs.asked_plan import plan as plan
from lmlab.costs.calibrate import plan_steps as plan_steps
from lmlab.coursework.verbs import prove as prove
from lmlab.exchange.compare_logs import compare_logs as compare_logs
from lmlab.exchange.imported import import_run as import_run
from lmlab.exchange.verbs import export as export
from lmlab.inside.theory.verbs import explain_dot_products as explain_dot_products
from lmlab.inside.theory.verbs import explain_gradients as explain_gradients
from lmlab.inside.theory.verbs import explain_positions as explain_positions
from lmlab.inside.theory.verbs import explain_sandbox as explain_sandbox
from lmlab.inside.verbs import explain as explain
from lmlab.inside.verbs import explain_attention as explain_attention
from lmlab.inside.verbs import explain_gates as explain_gates
from lmlab.inside.verbs import explain_heads as explain_heads
from lmlab.inside.verbs import explain_matrix as explain_matrix
from lmlab.inside.verbs import explain_search as explain_search
from lmlab.learn.about_settings import settings as settings
from lmlab.learn.curves import curves as curves
from lmlab.learn.going_on import fine_tune as fine_tune
from lmlab.learn.going_on import resume as resume
from lmlab.learn.mixing import mix as mix
from lmlab.learn.recipe import recipe as recipe
from lmlab.learn.train import train as train
from lmlab.promises.suite import contract as contract
from lmlab.selection import best as best
from lmlab.server.verbs import serve as serve
from lmlab.sweeps import sweep as sweep
from lmlab.tasks.classification.verbs import classify as classify
from lmlab.tasks.classification.verbs import mistakes as mistakes
from lmlab.tasks.latent.verbs import latent as latent
from lmlab.tasks.masked.verbs import fill as fill
from lmlab.tasks.translation.verbs import translate as translate
from lmlab.tasks.word_pairs.verbs import combine as combine
from lmlab.tasks.word_vectors.verbs import analogy as analogy
from lmlab.tasks.word_vectors.verbs import neighbours as neighbours
from lmlab.tasks.word_vectors.verbs import vectors as vectors
from lmlab.tasks.word_vectors.verbs import word_map as word_map
from lmlab.text.corpus import read as read
from lmlab.text.files_and_folders import strings as strings
from lmlab.text.verbs import data as data
from lmlab.verbs.evaluate import evaluate as evaluate
from lmlab.verbs.generate import generate as generate
from lmlab.verbs.generate import generate_many as generate_many
from lmlab.verbs.load import load as load
from lmlab.verbs.machine import machine as machine
from lmlab.verbs.score import score as score
from lmlab.version import __version__ as __version__
from lmlab_derive.verbs import check as check
from lmlab_derive.verbs import grade as grade

__all__: list[str]
