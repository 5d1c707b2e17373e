"""The configuration object of `auto_complete_config`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


class ModelConfig:
    """A model's configuration. Unset values can be set, existing values cannot be changed."""

    def __init__(self, model_config: str) -> None:
        """Parse a configuration from JSON text."""
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration itself, not a copy."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set the maximum batch size. Raises `ValueError` if the configuration has a larger one."""
        configured = self._model_config["max_batch_size"]
        if configured > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {configured}, but in "
                "auto-complete-config function for model "
                f"'{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Select the dynamic batcher.

        Raises `ValueError` if the configuration has another scheduler.
        """
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', "
                    "but auto-complete-config function for model "
                    f"'{self._name}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: dict[str, Any]) -> None:  # noqa: A002 - callers name it
        """Add or complete an input: `name`, `data_type` ("TYPE_FP32"), `dims`, maybe `optional`.

        Raises `ValueError` for other keys, and for contradictions to the configuration.
        """
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output: dict[str, Any]) -> None:
        """Add or complete an output: `name`, `data_type`, `dims`.

        Raises `ValueError` as `add_input` does.
        """
        self._add("output", output, ("name", "data_type", "dims"))

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, Any]) -> None:
        """Set `decoupled`.

        Raises `ValueError` for other keys, and for contradictions to the configuration.
        """
        if any([key != "decoupled" for key in transaction_policy_dict]):
            raise ValueError(
                "model transaction property in auto-complete-config function for model "
                f"'{self._name}' contains property other than 'decoupled'."
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        decoupled = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", decoupled) != decoupled:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config for model "
                f"'{self._name}', "
                f"which is already set to '{policy['decoupled']}'."
            )
        policy["decoupled"] = decoupled

    @property
    def _name(self) -> str:
        return str(self._model_config["name"])

    def _add(self, kind: str, tensor: dict[str, Any], properties: Sequence[str]) -> None:
        self._check_properties(kind, tensor, properties)
        for known in self._model_config[kind]:
            if known["name"] == tensor["name"]:
                self._check_same(kind, known, tensor)
                known.update(tensor)
                return
        self._model_config[kind].append(tensor)

    def _check_properties(
        self, kind: str, tensor: dict[str, Any], properties: Sequence[str]
    ) -> None:
        where = f"in auto-complete-config function for model '{self._name}'"
        if any([each not in properties for each in tensor]):
            names = (
                ", ".join([f"'{each}'" for each in properties[:-1]]) + f" and '{properties[-1]}'"
            )
            raise ValueError(
                f"{kind} '{tensor['name']}' {where} contains property other than {names}."
            )
        if "name" not in tensor:
            raise ValueError(f"{kind} {where} is missing 'name' property.")
        for needed in ("data_type", "dims"):
            if needed not in tensor:
                raise ValueError(
                    f"{kind} '{tensor['name']}' {where} is missing '{needed}' property."
                )

    def _check_same(self, kind: str, known: dict[str, Any], tensor: dict[str, Any]) -> None:
        name = tensor["name"]
        if known["data_type"] not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype "
                f"{known['data_type']} "
                f"for {kind} '{name}', model provides {tensor['data_type']}"
            )
        for what, differs in (
            ("dims", known["dims"] and known["dims"] != tensor["dims"]),
            (
                "optional",
                "optional" in known
                and known["optional"] != tensor.get("optional", known["optional"]),
            ),
        ):
            if differs:
                raise ValueError(
                    f"model '{self._name}', tensor '{name}': the model expects {what} "
                    f"{tensor[what]} "
                    f"but the model configuration specifies {what} {known[what]}"
                )
