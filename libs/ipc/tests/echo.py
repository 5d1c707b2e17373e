"""The worker's end in another interpreter, which sends every frame back.

Arguments: the folder of the package and the descriptor of the socket.
"""

from __future__ import annotations

import array
import os
import socket
import sys

sys.path.insert(0, sys.argv[1])
import ipc


class Tensor:
    def __init__(self, name, datatype, shape, data):
        self.name, self.datatype, self.shape, self.data = name, datatype, shape, data


def main():
    connection = socket.socket(fileno=int(sys.argv[2]))
    endpoint = ipc.Endpoint()
    while True:
        data, control, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
        if not data:
            return
        received_descriptors = array.array("i")
        for _, _, raw in control:
            received_descriptors.frombytes(raw)
        for frame in endpoint.feed(data, list(received_descriptors)):
            rows, requested = endpoint.rows(frame, 0, Tensor)
            sent, descriptors = endpoint.compose(frame.kind, rows=rows, requested=requested)
            ancillary = (
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                if descriptors
                else []
            )
            count = connection.sendmsg([sent], ancillary)
            if count < len(sent):
                connection.sendall(sent[count:])
            for descriptor in descriptors:
                os.close(descriptor)


main()
