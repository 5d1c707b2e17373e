"""The report as one HTML page, which needs no network."""

from __future__ import annotations

from pathlib import Path

import jinja2
import msgspec

from tritonpy_analyzer.report.text import interval_text, study_text
from tritonpy_analyzer.study import Study

_FOLDER = Path(__file__).parent


def write_html(path: Path, study: Study) -> None:
    """Write the report. Raises OSError."""
    path.write_text(render_html(study), encoding="utf-8")


def render_html(study: Study) -> str:
    """Return the page: the answer, charts drawn by a script of its own, and a sortable table."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
    )
    data = msgspec.json.encode(study).decode().replace("<", "\\u003c")
    script = (_FOLDER / "charts.js").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        study=study,
        answer=study_text(study),
        data=data,
        script=script,
        interval_text=interval_text,
    )
