from __future__ import annotations

import inspect

from tritonpy import hookspecs


def hooks() -> dict[str, object]:
    return {name: value for name, value in vars(hookspecs).items() if name.startswith("tritonpy_")}


def test_every_hook_has_a_docstring_and_annotations() -> None:
    for name, hook in hooks().items():
        document = inspect.getdoc(hook)
        assert document, name
        assert document.endswith("."), name
        assert "return" in inspect.get_annotations(hook), name


def test_registration_hooks_take_nothing_and_events_return_nothing() -> None:
    registering = set(hookspecs.registration_hooks())
    for name, hook in hooks().items():
        signature = inspect.signature(hook)
        assert (name in registering) == (not signature.parameters)
        assert (name in registering) == (signature.return_annotation != "None")


def test_the_hooks_are_those_of_the_plugin_interface() -> None:
    assert hookspecs.registration_hooks() == (
        "tritonpy_backends", "tritonpy_backend_folders", "tritonpy_runners", "tritonpy_rate_limiters", "tritonpy_schedulers", "tritonpy_batch_policies", "tritonpy_repositories",
        "tritonpy_residency_policies",
        "tritonpy_repo_agents", "tritonpy_caches", "tritonpy_frontends", "tritonpy_frontend_hosts", "tritonpy_transports",
        "tritonpy_authenticators",
        "tritonpy_sharings", "tritonpy_routers", "tritonpy_operations", "tritonpy_observers", "tritonpy_trace_sinks", "tritonpy_devices", "tritonpy_commands",
        "tritonpy_lint_rules", "tritonpy_doctor_checks",
    )  # fmt: skip
    assert set(hooks()) - set(hookspecs.registration_hooks()) == {
        "tritonpy_server_started", "tritonpy_server_stopping", "tritonpy_model_loaded", "tritonpy_model_unloaded",
    }  # fmt: skip
