"""Pages of HTML that can be mailed: a model for tables, one for images, a comparison."""

from islab.report.images import write_image_report
from islab.report.model import render_report, write_report

__all__ = ["render_report", "write_image_report", "write_report"]
