"""The contract of the checks of `tritonpy doctor`."""

from __future__ import annotations

from tritonpy.config import ServerConfig
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_testing.contracts.plugin import PluginContract


class DoctorCheckContract(PluginContract):
    """The contract of `DoctorCheck`. Set `plugin_class` and `name`."""

    interface = DoctorCheck
    hook = "tritonpy_doctor_checks"

    def results(self) -> list[CheckResult]:
        """Return what the check finds with a default configuration."""
        check: DoctorCheck = self.plugin_class()
        return list(check.run(DoctorContext(ServerConfig())))

    def test_it_has_a_title(self) -> None:
        assert self.plugin_class.title
        assert not self.plugin_class.title.endswith(".")

    def test_problems_have_a_remedy(self) -> None:
        found = self.results()
        assert found, "a check has at least one result"
        assert all(result.text for result in found)
        for result in found:
            assert result.status is CheckStatus.OK or result.fix, f"'{result.text}' has no remedy"
