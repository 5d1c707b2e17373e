"""The kinds of frames, with the words, JSON extras and rows of each."""

from __future__ import annotations


class Kind:
    """Kinds as plain integers: comparing an enum member costs ten times as much.

    RETURN goes in both directions. Its words are the number of returned segments, their ids, and
    the ids of segments to unmap.
    """

    RETURN = 0
    # Server to worker.
    START = 1  # extras: what to run; descriptors: memory for `progress`, and a parent pipe
    EXECUTE = 2  # words: see `executions`; rows: the inputs of the requests
    CANCEL = 3  # words: numbers of requests
    # words: call, flags; rows: at most one, the outputs; extras: error, parameters
    CALL_RESPONSE = 4
    QUERY_RESULT = 5  # words: query; extras: value or error
    STOP = 6  # finalize the model, then send STOPPED
    # EXECUTE with the words of `sequence_frame` inserted; rows: also the control tensors and states
    # of each execution; extras: sequences, state_outputs
    EXECUTE_SEQUENCE = 7
    # Worker to server.
    STARTED = 16  # extras: properties of the worker
    FAILED = 17  # extras: why the worker failed to start
    RESPONSES = 18  # words: see `executions`; rows: the outputs of the responses
    CALL = 19  # words: call, execution, request; rows: the inputs; extras: other request fields
    CALL_CANCEL = 20  # words: call
    NOTIFY = 21  # extras: verb, arguments
    STOPPED = 22
    CALL_CONSUMED = 23  # words: call, number of further responses that the caller consumed
    CALL_ABANDONED = 24  # words: call; no code will consume its responses
    # words: call; the caller waits for its first response before it consumes any other
    CALL_AWAITED = 25
    # Both directions.
    QUERY = 32  # words: query; extras: verb, arguments; the other end sends a QUERY_RESULT
