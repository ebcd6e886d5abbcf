"""The worker: a process with PyTorch's libraries that keeps a network on its device.

Frames are the length of their JSON as 4 bytes, the JSON, and the blobs whose lengths it lists; `crates/ssn-engine/src/worker.rs` has the
requests and replies.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from io import FileIO
from types import FrameType, TracebackType
from typing import Any

from ssn import _program
from ssn._errors import failure

OnFrame = Callable[[dict[str, Any]], None]
Reply = tuple[dict[str, Any], "bytearray | None"]

TAIL = 2000
"""Bytes of the worker's last words."""
PATIENCE = 10.0
"""Seconds that a worker has to end by itself."""


class Worker:
    """A process that answers requests in their order.

    Ctrl-C stops all requests that are waiting and is raised when the worker has answered; a second one kills the worker. The next request
    starts another then, which answers the request ``first`` before.
    """

    def __init__(self, first: dict[str, Any] | None = None) -> None:
        self.opened: dict[str, Any] = {}
        """The answer of ``first``."""
        self.interrupted = False
        """Whether Ctrl-C stopped the last request."""
        self._first = first
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = self._answered = self._lost = 0
        self._replies: dict[int, Reply | BaseException] = {}
        self._unwanted: set[int] = set()

    @property
    def pid(self) -> int | None:
        """The process; None while there is none."""
        return None if self._process is None else self._process.pid

    def ask(self, request: dict[str, Any], blobs: Sequence[memoryview] = (), on_frame: OnFrame | None = None) -> Reply:
        """Sends a request and returns its answer."""
        with self._lock, _Interrupts(self._interrupt) as interrupts:
            number = self._submit(request, blobs, interrupts)
            return self._result(number, on_frame, interrupts)

    def submit(self, request: dict[str, Any], blobs: Sequence[memoryview] = ()) -> int:
        """Sends a request; :meth:`result` waits for its answer."""
        with self._lock, _Interrupts(self._interrupt) as interrupts:
            number = self._submit(request, blobs, interrupts)
            if interrupts.count:
                self._drain()
                raise KeyboardInterrupt
            return number

    def result(self, number: int, on_frame: OnFrame | None = None) -> Reply:
        """Waits for the answer of a request; ``on_frame`` gets what comes before it."""
        with self._lock, _Interrupts(self._interrupt) as interrupts:
            return self._result(number, on_frame, interrupts)

    def open(self) -> None:
        """Starts the process, unless there is one."""
        with self._lock, _Interrupts(self._interrupt) as interrupts:
            self._open(interrupts)

    def _open(self, interrupts: _Interrupts) -> None:
        self._check_owner()
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._start()
        if self._first is None:
            return
        try:
            self.opened, _ = self._result(self._send(self._first, (), interrupts), None, interrupts)
        except BaseException:
            self.close()
            raise

    def _submit(self, request: dict[str, Any], blobs: Sequence[memoryview], interrupts: _Interrupts) -> int:
        self._open(interrupts)
        return self._send(request, blobs, interrupts)

    def _send(self, request: dict[str, Any], blobs: Sequence[memoryview], interrupts: _Interrupts) -> int:
        head = json.dumps({"request": request, "blobs": [blob.nbytes for blob in blobs]}).encode()
        try:
            self._write(memoryview(struct.pack("<I", len(head)) + head))
            for blob in blobs:
                self._write(blob)
        except OSError:
            raise self._died() from None
        self._sent += 1
        if interrupts.count:
            # It may have come too late to be stopped by the signal.
            self._interrupt(1)
        return self._sent

    def _result(self, number: int, on_frame: OnFrame | None, interrupts: _Interrupts) -> Reply:
        broken: BaseException | None = None
        while number not in self._replies:
            self._check_owner()
            if self._process is None or number <= self._lost:
                raise RuntimeError("it was closed before it answered")
            try:
                frame, blob = self._read()
            except RuntimeError:
                if interrupts.count > 1:
                    raise KeyboardInterrupt("the worker was killed; earlier checkpoints are kept") from None
                raise
            if self._is_answer(frame, blob) or on_frame is None or broken is not None:
                continue
            try:
                on_frame(frame)
            except BaseException as error:
                # The work is not wanted any more; the worker stays.
                broken = error
                self._interrupt(1)
        reply = self._replies.pop(number)
        self.interrupted = interrupts.count > 0
        if interrupts.count or broken is not None:
            self._drain()
        if broken is not None:
            raise broken
        if isinstance(reply, BaseException):
            raise reply
        if interrupts.count and reply[0].get("failure") is None:
            raise KeyboardInterrupt
        return reply

    def stop(self) -> None:
        """Stops the requests that are waiting."""
        self._interrupt(1)

    def forget(self, number: int) -> None:
        """Throws the answer of a request away."""
        with self._lock:
            if self._replies.pop(number, None) is None and number > self._answered:
                self._unwanted.add(number)

    def close(self) -> None:
        """Ends the process; the next request starts another."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if self._process is not None:
                self._finalizer()
                self._process = None
                self._replies.clear()

    # The process.

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError("it belongs to the process that opened it, and this one was forked from it; open another one here")

    def _start(self) -> None:
        # What libraries print is kept for its last words.
        self._said = tempfile.TemporaryFile(prefix="ssn-")
        here, there = os.pipe()
        try:
            self._process = subprocess.Popen(
                [os.fspath(_program.path()), "worker", f"/dev/fd/{there}"],
                stdin=subprocess.PIPE,
                stdout=self._said,
                stderr=self._said,
                env=_program.environment(),
                pass_fds=(there,),
                # Ctrl-C in a terminal would reach it as well.
                start_new_session=True,
            )
        except BaseException:
            os.close(here)
            raise
        finally:
            os.close(there)
        self._incoming: FileIO = os.fdopen(here, "rb", buffering=0)
        self._finalizer = weakref.finalize(self, _end, self._process, self._incoming, self._owner)
        self._answered = self._lost = self._sent
        self._replies.clear()
        self._unwanted.clear()
        self._read()  # its greeting

    def _write(self, rest: memoryview) -> None:
        assert self._process is not None and self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        while rest:
            rest = rest[os.write(descriptor, rest[: 1 << 20]) :]

    def _read(self) -> tuple[dict[str, Any], bytearray | None]:
        try:
            (length,) = struct.unpack("<I", self._exactly(4))
            frame = json.loads(self._exactly(length))
            blobs = [self._exactly(count) for count in frame.get("blobs", [])]
        except EOFError:
            raise self._died() from None
        return frame, blobs[0] if blobs else None

    def _exactly(self, count: int) -> bytearray:
        found = bytearray(count)
        rest = memoryview(found)
        while rest:
            some = self._incoming.readinto(rest)
            if not some:
                raise EOFError
            rest = rest[some:]
        return found

    def _is_answer(self, frame: dict[str, Any], blob: bytearray | None) -> bool:
        if "ok" not in frame and "error" not in frame:
            return False
        self._answered += 1
        error = frame.get("error")
        if error is not None and error["ends"]:
            # The others get no answer.
            self.close()
            self._replies[self._answered] = failure(error["code"], error["message"])
        elif self._answered in self._unwanted:
            self._unwanted.discard(self._answered)
        else:
            self._replies[self._answered] = failure(error["code"], error["message"]) if error is not None else (frame["ok"], blob)
        return True

    def _died(self) -> RuntimeError:
        """Returns the error of a worker that ended, with its last words."""
        process, self._process = self._process, None
        assert process is not None
        self._finalizer()
        self._replies.clear()
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - TAIL))
        words = self._said.read().decode(errors="replace").strip()
        code = process.returncode
        ended = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with {code}"
        if words.startswith("error: "):
            return _of_program(code or 0, words.removeprefix("error: "))
        return RuntimeError(f"the worker {ended}; the next call starts another" + (f". Its last words: {words}" if words else ""))

    def _interrupt(self, count: int) -> None:
        process = self._process
        if process is None:
            return
        if count > 1:
            process.kill()
        else:
            process.send_signal(signal.SIGINT)

    def _drain(self) -> None:
        """Waits for the answers of all requests and throws them away."""
        try:
            while self._process is not None and self._answered < self._sent:
                self._is_answer(*self._read())
        except RuntimeError:
            pass
        self._replies.clear()
        self._unwanted.clear()


def _of_program(code: int, message: str) -> RuntimeError:
    """Returns the error of a worker that did not start."""
    error = failure(code, message)
    return error if isinstance(error, RuntimeError) else RuntimeError(str(error))


def _end(process: subprocess.Popen[bytes], incoming: FileIO, owner: int) -> None:
    """Lets a process save and end; it does when its standard input ends."""
    if os.getpid() != owner:
        return
    assert process.stdin is not None
    try:
        process.stdin.close()
    except OSError:
        pass
    incoming.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Interrupts:
    """Counts Ctrl-C, and calls a function instead of raising: an exception between two bytes would tear a frame apart."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self._act = act
        self.count = 0

    def __enter__(self) -> _Interrupts:
        is_main = threading.current_thread() is threading.main_thread()
        self._before = signal.getsignal(signal.SIGINT) if is_main else None
        if self._before is signal.SIG_IGN:
            self._before = None
        if self._before is not None:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._act(self.count)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
