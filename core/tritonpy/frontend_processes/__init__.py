"""Processes that run frontends in front of one engine: the wire between them.

The engine's process owns models, queues, workers, regions, statistics and traces; a frontend process owns connections. They talk in the frames of
`tritonpy.ipc` over one Unix socket pair per process. Both ends are events of a loop, and what was said in one turn of it is one frame and one wake-up.

The life of a process is that of a worker: START says what to run (extras: the configuration and the addresses; descriptors: a lifeline, then the
sockets that listen already), STARTED or FAILED answers it, STOP and STOPPED end it. ASK, REPLY and TELL carry what is rare, as JSON: the methods of
the engine, metrics and log lines one way, changes of settings the other way (`kinds` has what only these two say to each other):

- INFER, requests in the order of their arrival. Words: how many, how many words these are, then *runs*: how many requests, the number of the first,
  their *head* (the number of a model's name and version, announced once in the extras), flags, the number of their sequence; then two for each request:
  `received_ns`, `deadline_ns`. Neighbours with the same head and nothing that few requests have are one run, others are alone in theirs. Rows: the inputs.
  Extras: `ids`, and by index what few requests have (`requests_frame`).
- ANSWER, answers in their order. Words: how many, then three for each: the number of its request, flags, the model's version plus one.
  Rows: the outputs. Extras: errors, parameters, names and ids that are not the request's.
- CANCEL, words: numbers of requests. TAKEN, words: the number of a request, how many more of its answers left the process: a model that answers any
  number of times waits while a window (`ipc.windows`) of them is untaken.
- NOTES, words: the number of a request that is traced; extras: the moments that the frontend noted since.

A tensor that lies in a region of shared memory does not travel: its row has none of it, the extras name the place. One whose bytes do not fit its shape
travels as bytes, so that the engine can refuse it in its own words (`odd_tensors`).

The engine's process looks at as little as it can. Requests of a run whose inputs lie in one block have the same names, types and shapes: they are
checked once, where they were not before, and taken in together (`Engine.infer_alike`). Inputs stay in the block that they came in, and outputs too where a sink
`passes_on` its answers: tensors are made of them for those who ask (`ipc.blocks`), and the bytes of neighbours are copied to the other side in one piece.
"""
