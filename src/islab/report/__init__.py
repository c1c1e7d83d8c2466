"""A fitted model as one HTML file that can be mailed: scores, paths, explanations, what-if."""

from islab.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
