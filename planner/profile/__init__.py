"""Measurements of the attached machine: its speeds, op times, and the scratch memory of ops."""

from planner.profile.attached_machine import cpu_name
from planner.profile.cache import cache_path
from planner.profile.machine_by_name import kind_of_measured, machine, machines
from planner.profile.measure import OpMeasurements, forget_ops, measure_ops
from planner.profile.prepare import PreparedStep, prepare
from planner.profile.signatures import signature
from planner.profile.traces.trace_seconds import TraceMeasurements, trace_seconds

__all__ = [
    "OpMeasurements",
    "PreparedStep",
    "TraceMeasurements",
    "cache_path",
    "cpu_name",
    "forget_ops",
    "kind_of_measured",
    "machine",
    "machines",
    "measure_ops",
    "prepare",
    "signature",
    "trace_seconds",
]  # fmt: skip
