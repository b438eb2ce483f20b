# What type checkers and editors see of `planner`, whose names are imported when they are first used. `capture`,
# `machine` and `run` are packages that can be called; here they are the functions.
from planner import graph as graph
from planner import memory as memory
from planner import partition as partition
from planner import plan as plan
from planner import profile as profile
from planner import snapshot as snapshot
from planner import swap as swap
from planner import units as units
from planner import zoo as zoo
from planner.apply import apply as apply
from planner.capture import capture as capture
from planner.errors import StowageError as StowageError
from planner.fit import fit as fit
from planner.memory import pack as pack
from planner.partition import search_partition as search_partition
from planner.plan import validate as validate
from planner.profile import machine as machine
from planner.run import run as run
from planner.run import run_workers as run_workers
from planner.step import SGD as SGD
from planner.step import Adam as Adam
from planner.step import AdamW as AdamW
from planner.step import InferenceStep as InferenceStep
from planner.step import TrainStep as TrainStep
from planner.swap import plan_swaps as plan_swaps
from planner.swap import search_swaps as search_swaps
