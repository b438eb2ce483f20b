"""A self test: whether plans leave eager PyTorch's numbers on the attached device, and stay inside their memory."""

from planner.callable_package import make_callable
from planner.selftest.environment import environment
from planner.selftest.report import SelfTestReport, StageResult, report_json
from planner.selftest.self_test import each_stage, selftest

make_callable(__name__)

__all__ = ["SelfTestReport", "StageResult", "each_stage", "environment", "report_json", "selftest"]
