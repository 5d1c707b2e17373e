"""Right and wrong uses of `auto_complete_config`, selected by the configuration parameter `what`."""

from __future__ import annotations

import sys

import numpy as np
import triton_python_backend_utils as pb_utils

INPUT = {"name": "IN", "data_type": "TYPE_INT32", "dims": [2]}
OUTPUT = {"name": "OUT", "data_type": "TYPE_INT32", "dims": [2]}


def whole(config, **changes):
    config.add_input({**INPUT, **changes})
    config.add_output({**OUTPUT, **changes})
    return config


ACTIONS = {}


def action(function):
    ACTIONS[function.__name__] = function
    return function


@action
def plain(config):
    config.set_max_batch_size(0)
    return whole(config)


@action
def batched(config):
    config.set_max_batch_size(4)
    config.set_dynamic_batching()
    return whole(config)


@action
def optional(config):
    config.add_input({"name": "MORE", "data_type": "TYPE_FP32", "dims": [-1], "optional": True})
    return whole(config)


@action
def decoupled(config):
    config.set_model_transaction_policy({"decoupled": True})
    return whole(config)


@action
def twice_the_same(config):
    return whole(whole(config))


@action
def nothing(config):
    return config


@action
def only_input(config):
    config.add_input(INPUT)
    return config


@action
def strange_type(config):
    return whole(config, data_type="TYPE_STRANGE")


@action
def no_dims(config):
    return whole(config, dims=[])


@action
def bad_dims(config):
    return whole(config, dims=[0])


@action
def other_dims(config):
    return whole(whole(config), dims=[3])


@action
def other_type(config):
    return whole(whole(config), data_type="TYPE_FP32")


@action
def smaller_batch(config):
    config.set_max_batch_size(8)
    config.set_max_batch_size(2)
    return whole(config)


@action
def negative_batch(config):
    config.set_max_batch_size(-1)
    return whole(config)


@action
def unknown_input_key(config):
    config.add_input({**INPUT, "labels": "x"})
    return config


@action
def unknown_output_key(config):
    config.add_output({**OUTPUT, "optional": True})
    return config


@action
def input_without_name(config):
    config.add_input({"data_type": "TYPE_INT32", "dims": [2]})
    return config


@action
def input_without_type(config):
    config.add_input({"name": "IN", "dims": [2]})
    return config


@action
def input_without_dims(config):
    config.add_input({"name": "IN", "data_type": "TYPE_INT32"})
    return config


@action
def output_without_name(config):
    config.add_output({"data_type": "TYPE_INT32", "dims": [2]})
    return config


@action
def output_without_type(config):
    config.add_output({"name": "OUT", "dims": [2]})
    return config


@action
def output_without_dims(config):
    config.add_output({"name": "OUT", "data_type": "TYPE_INT32"})
    return config


@action
def unknown_policy(config):
    config.set_model_transaction_policy({"coupled": True})
    return config


@action
def other_policy(config):
    config.set_model_transaction_policy({"decoupled": True})
    config.set_model_transaction_policy({"decoupled": False})
    return config


@action
def dictionary(config):
    whole(config)["max_batch_size"] = 3
    return config


@action
def through_the_dictionary(config):
    whole(config).as_dict()["max_batch_size"] = 3
    return config


@action
def returns_none(config):
    whole(config)


@action
def returns_dictionary(config):
    return whole(config).as_dict()


@action
def raises(config):
    raise ValueError("cannot be completed")


@action
def leaves(config):
    sys.exit(3)


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        what = auto_complete_model_config.as_dict()["parameters"]["what"]["string_value"]
        return ACTIONS[what](auto_complete_model_config)

    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        data = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        names = [one.name() for one in request.inputs()]
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("OUT", (data * len(names)).astype(np.int32))]
        )
