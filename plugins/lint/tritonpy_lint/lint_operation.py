"""The operation `POST /v2/lint`: checks the text of a configuration in a running server."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tritonpy import InvalidArgument
from tritonpy.auth import Verb
from tritonpy.frontend import Operation, OperationCall, OperationGroup, OperationHandler
from tritonpy.plugins import make_plugin_manager
from tritonpy_checks.machine import this_machine
from tritonpy_checks.model_reader import ModelReader, RepositoryModel
from tritonpy_lint.linting import LintResult, check_models, installed_backends, load_rules
from tritonpy_lint.reports import as_json

LINT = Operation(
    "lint_config", "POST", "lint", "Return the mistakes of a model configuration.", Verb.READ
)
_MAX_NAME = 255


class LintOperations(OperationGroup):
    """Checks configurations that a client sends; nothing is loaded or written.

    The body is `{"config": TEXT, "name": NAME, "files": [PATH, …]}`. `config` is the text of a
    config.pbtxt. `name` (default "model") and `files` (default: one version with the backend's
    usual file) describe the folder that the model would have.
    """

    def operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the operation."""
        return {LINT: check_config}


def check_config(call: OperationCall) -> object:
    """Return the findings as `tritonpy lint --json` prints them. Raises InvalidArgument."""
    body = call.body
    text = body.get("config") if isinstance(body, Mapping) else None
    if not isinstance(text, str):
        raise InvalidArgument('the body must be {"config": "the text of a config.pbtxt"}')
    name, files = body.get("name", "model"), body.get("files", [])
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        raise InvalidArgument("'name' must be the name of a model")
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise InvalidArgument("'files' must be a list of paths relative to the model's folder")
    manager = make_plugin_manager()
    backends = installed_backends(manager)
    given_files = [*files, "config.pbtxt"]
    if not files:
        named = [
            filename
            for backend in backends.values()
            for filename in backend.files.default_filenames
            if f'"{backend.files.name}"' in text
        ]
        given_files.append(f"1/{named[0]}" if named else "1/")
    content = {"config.pbtxt": text.encode()}
    models = ModelReader(backends, this_machine()).read(
        [RepositoryModel(name, given_files, content.get)]
    )
    rules = load_rules(manager)
    found = check_models(list(models.values()), rules)[id(models[name])]
    return json.loads(as_json(LintResult(found, list(models.values()), rules)))
