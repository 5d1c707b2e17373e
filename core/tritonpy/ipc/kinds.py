"""The kinds of frames. `words` and `extras` are what each carries beside tensors."""

from __future__ import annotations


class Kind:
    """Plain numbers: an enum member costs ten times as much to compare.

    Between both ends: RETURN hands parcels back; words: how many are returned, their ids, ids that may be forgotten.
    """

    RETURN = 0
    # Server to worker.
    START = 1  # extras: what to run; descriptors: memory for `progress`, and a lifeline
    EXECUTE = 2  # words: see executions; rows: the inputs of the requests
    CANCEL = 3  # words: numbers of requests
    CALL_ANSWER = 4  # words: call, flags; rows: at most one, the outputs; extras: error, parameters
    REPLY = 5  # words: question; extras: value or error
    STOP = 6  # finish: `finalize`, then STOPPED
    EXECUTE_LADEN = 7  # EXECUTE with the words of `laden` in between; rows: also what a scheduler added to each execution; extras: sequences, state_outputs
    # Worker to server.
    STARTED = 16  # extras: what the server should know of the worker
    FAILED = 17  # extras: why it could not start
    ANSWERS = 18  # words: see executions; rows: the outputs of the answers
    CALL = 19  # words: call, execution, request; rows: the inputs; extras: the rest of the request
    CALL_CANCEL = 20  # words: call
    TELL = 21  # extras: verb, arguments
    STOPPED = 22
    CALL_TAKEN = 23  # words: call, how many more of its answers the caller took
    CALL_LEFT = 24  # words: call; nobody is left to take its answers
    CALL_WANTED = 25  # words: call; the caller waits for its first answer, whatever else it has to take
    # Either way.
    ASK = 32  # words: question; extras: verb, arguments; answered by REPLY
