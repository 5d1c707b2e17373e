"""Uses response senders correctly and wrongly: PLAN is a list of actions.

The next request with the plan "tell" gets the outcome of each action. A decoupled model has the
same code.
"""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def number(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], np.int32))])


def text_response(value):
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor("TOLD", np.array([json.dumps(value).encode()], np.object_))]
    )


def error(code):
    return pb_utils.InferenceResponse(
        error=pb_utils.TritonError(f"a response says {code}", getattr(pb_utils.TritonError, code))
    )


def wait_for(condition):
    deadline = time.monotonic() + 3
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(
            json.loads(args["model_config"])
        )
        self.outcomes = []
        self.threads = []
        self.kept = []

    def execute(self, requests):
        responses = [self._run(request) for request in requests]
        if self.decoupled and responses != ["list"]:
            return None
        return [None if one == "list" else one for one in responses]

    def _run(self, request):
        plan = json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0])
        if plan == "tell":
            return self._report(request)
        self.outcomes = []
        sender = request.get_response_sender()
        if plan and plan[0] == ["thread"]:
            self.threads.append(
                threading.Thread(target=self._follow, args=(request, sender, plan[1:]))
            )
            self.threads[-1].start()
            return None
        return self._follow(request, sender, plan)

    def _report(self, request):
        while self.threads:
            self.threads.pop().join()
        response = text_response(self.outcomes)
        if not self.decoupled:
            return response
        request.get_response_sender().send(response, FINAL)
        return None

    def _follow(self, request, sender, plan):
        returned = None
        for name, *arguments in plan:
            if name == "raise":
                raise ValueError("in the middle of the plan")
            try:
                result = getattr(self, f"_do_{name}")(request, sender, *arguments)
            except Exception as error:
                self.outcomes.append([name, type(error).__name__, str(error)])
                continue
            if name.startswith("return"):
                returned = result
            else:
                self.outcomes.append([name, result])
        return returned

    def _do_send(self, request, sender, value):
        return sender.send(number(value))

    def _do_send_final(self, request, sender, value):
        return sender.send(number(value), flags=FINAL)

    def _do_final(self, request, sender):
        return sender.send(flags=FINAL)

    def _do_nothing(self, request, sender):
        return sender.send()

    def _do_flags(self, request, sender, flags):
        return sender.send(number(0), flags=flags)

    def _do_bare_flags(self, request, sender, flags):
        return sender.send(flags=flags)

    def _do_text(self, request, sender):
        return sender.send("text")

    def _do_error(self, request, sender, code):
        return sender.send(error(code))

    def _do_error_final(self, request, sender, code):
        return sender.send(error(code), flags=FINAL)

    def _do_empty(self, request, sender):
        return sender.send(pb_utils.InferenceResponse([]))

    def _do_both(self, request, sender, value):
        response = pb_utils.InferenceResponse(
            [*number(value).output_tensors(), *text_response("more").output_tensors()]
        )
        return sender.send(response)

    def _do_again(self, request, sender):
        return sender is request.get_response_sender()

    def _do_other_sender(self, request, sender, value):
        return request.get_response_sender().send(number(value), flags=FINAL)

    def _do_cancelled(self, request, sender):
        return [request.is_cancelled(), sender.is_cancelled()]

    def _do_wait_for_cancel(self, request, sender):
        return [wait_for(sender.is_cancelled), request.is_cancelled()]

    def _do_return(self, request, sender, value):
        return number(value)

    def _do_return_list(self, request, sender):
        return "list"
