from __future__ import annotations

from collections.abc import Callable

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
RESPOND = "return [pb_utils.InferenceResponse() for _ in requests]"


@pytest.fixture
def printer(worker: Start) -> Start:
    """Return a function that starts a worker whose `execute` has this body."""

    def start(body: str, **options: object) -> Peer:
        lines = "\n".join(f"    {line}" for line in [*body.strip("\n").split("\n"), RESPOND])
        return worker(f"def execute(self, requests):\n{lines}\n", **options)

    return start


def lines_of(peer: Peer) -> list[tuple[str, list[str]]]:
    return [(log["message"], log["requests"]) for log in peer.logs]


def test_lines_have_the_ids_of_the_requests(printer: Start) -> None:
    peer = printer("print('hello', 1)")
    peer.execute([fp32("A", 1)], [fp32("A", 1)], ids=["x", ""])
    peer.execute([fp32("A", 1)])
    assert lines_of(peer) == [("hello 1", ["x"]), ("hello 1", [])]


def test_a_line_is_sent_when_it_is_complete(printer: Start) -> None:
    peer = printer(
        "for part in 'one', ' two', '\\nthree\\nfour\\nfi', 've':\n    print(part, end='')"
    )
    peer.execute([fp32("A", 1)])
    assert [message for message, _ in lines_of(peer)] == ["one two\nthree\nfour", "five"]


def test_both_streams_are_logged(printer: Start) -> None:
    peer = printer(
        "print('out')\nprint('err', file=sys.stderr)\nsys.stderr.buffer.write(b'raw \\xff\\n')"
    )
    peer.execute([fp32("A", 1)])
    assert [message for message, _ in lines_of(peer)] == ["out", "err", "raw \\xff"]


def test_only_the_last_state_of_a_progress_bar_is_logged(printer: Start) -> None:
    peer = printer("for done in range(100):\n    sys.stderr.write(f'\\r{done}%')\nprint('\\r\\n')")
    peer.execute([fp32("A", 1)])
    assert "99%" in [message for message, _ in lines_of(peer)]


def test_coroutines_and_threads_with_a_copied_context_log_the_request(worker: Start) -> None:
    peer = worker(
        """
        async def execute(self, requests):
            await asyncio.sleep(0)
            print("coroutine")
            await asyncio.to_thread(print, "thread with context")
            thread = threading.Thread(target=print, args=("thread without",))
            thread.start()
            thread.join()
            return [pb_utils.InferenceResponse() for _ in requests]
        """
    )
    peer.execute([fp32("A", 1)], ids=["x"])
    assert lines_of(peer) == [
        ("coroutine", ["x"]),
        ("thread with context", ["x"]),
        ("thread without", []),
    ]


def test_an_endless_line_is_cut(printer: Start) -> None:
    peer = printer("sys.stdout.write('x' * 200_000)")
    peer.execute([fp32("A", 1)])
    assert "".join(message for message, _ in lines_of(peer)) == "x" * 200_000


def test_a_print_inside_a_destructor_inside_a_print_works(printer: Start) -> None:
    peer = printer(
        """
class Loud:
    def __del__(self):
        print("deleted")
class Text:
    def __str__(self):
        Loud()
        return "text"
print(Text())
"""
    )
    peer.execute([fp32("A", 1)])
    assert sorted(message for message, _ in lines_of(peer)) == ["deleted", "text"]


def test_programs_and_forked_processes_write_to_the_real_streams(printer: Start) -> None:
    peer = printer(
        """
import multiprocessing, subprocess
subprocess.run([sys.executable, "-c", "print('from a program')"], stdout=sys.stdout, check=True)
child = multiprocessing.get_context("fork").Process(target=print, args=("from a fork",))
child.start()
child.join()
print("exit", child.exitcode)
"""
    )
    peer.execute([fp32("A", 1)])
    assert peer.until_logged("exit 0")
    peer.stop()
    assert sorted(peer.printed().split("\n")) == ["", "from a fork", "from a program"]


def test_a_crash_prints_its_traceback(printer: Start) -> None:
    peer = printer("import faulthandler\nfaulthandler._sigsegv()")
    with pytest.raises(EOFError, match="Segmentation fault") as caught:
        peer.execute([fp32("A", 1)])
    assert "model.py" in str(caught.value)


def test_what_is_printed_before_a_failed_load_is_logged(start_worker: Start) -> None:
    peer = start_worker(
        "def initialize(self, args):\n    print('half a line', end='')\n    raise ValueError('no')"
    )
    peer.failed()
    assert lines_of(peer) == [("half a line", [])]
