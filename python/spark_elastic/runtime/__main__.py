"""The policy process: ``python -m spark_elastic.runtime``, started only by the plugin.

Reads one line from standard input (see `gateway.handshake`), then runs until the driver says stop or is gone.
The exit code tells the plugin why it ended:

    0  the application has ended, or the driver is gone
    1  the policy failed: a bug; the traceback is in the log
    2  the driver's line cannot be read
    3  jar and Python package have different versions, or the listener is not our driver
    4  the connection to the driver is lost
    5  this Python cannot run the policy: the jar's own `__main__.py` exits so, before it loads this module

The last line on standard error says the same in words.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from functools import partial

from spark_elastic.gateway.client import Py4JGateway
from spark_elastic.gateway.handshake import BadHandshake, Handshake, read_handshake, watch_for_end
from spark_elastic.gateway.server import Server
from spark_elastic.gateway.stages import Stages
from spark_elastic.redaction import RedactingFormatter
from spark_elastic.runtime.clock import SteadyClock
from spark_elastic.runtime.collector import collect_rarely
from spark_elastic.runtime.custom.host import Host
from spark_elastic.runtime.journal import open_journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.port import GatewayError, Mismatch
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.request_queue import RequestQueue
from spark_elastic.runtime.resume import resume

_STDIN = 0
# Query planning waits for the thread that answers it. That thread must not wait Python's default of 5 ms for
# the loop's thread.
_SWITCH_S = 0.0005
_log = logging.getLogger("spark_elastic.runtime")


def main() -> int:
    """Run the policy process and return its exit code."""
    sys.setswitchinterval(_SWITCH_S)
    collect_rarely()
    _ignore_the_terminal()
    _log_to_stderr()
    try:
        handshake = read_handshake(_STDIN)
    except BadHandshake as error:
        _log.error("%s", error)
        return 2
    # A driver that was killed cannot say stop. Nothing remains to be done for it, even if the loop is busy.
    watch_for_end(_STDIN, lambda: os._exit(0))
    try:
        gateway = Py4JGateway(handshake)
        try:
            _run(gateway, handshake)
        finally:
            gateway.close()
    except Mismatch as error:
        _log.error("%s", error)
        return 3
    except GatewayError as error:
        _log.error("%s", error)
        return 4
    except Exception as error:
        _log.exception("the policy failed")
        _log.error("the policy failed: %s: %s", type(error).__name__, error)
        return 1
    return 0


def _run(gateway: Py4JGateway, handshake: Handshake) -> None:
    publisher, requests = Publisher(handshake.restarts), RequestQueue()
    goes_on = partial(resume, watch=publisher.watch)
    clock = SteadyClock()
    opened = partial(open_journal, reading=clock.reading)
    custom = Host(lambda: requests.wake())
    loop = Loop(gateway, clock, publisher.scheduler, opened, publisher, requests, goes_on, custom)
    if not handshake.requests:
        loop.run()
        return
    server = Server(lambda: Py4JGateway(handshake, requests=True), publisher, requests, Stages(publisher))
    server.start()
    try:
        loop.run()
    finally:
        server.stop()


def _ignore_the_terminal() -> None:
    """Leave Ctrl-C and the end of the terminal session to the driver, which then says stop or is gone.

    SIGTERM keeps its default action, because the driver uses it to end this process gracefully.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _log_to_stderr() -> None:
    """Log our own messages, one line each, and suppress Py4J's, which would contain whole commands."""
    # Py4J reports lost connections on the root logger, with a traceback; our message needs one line.
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("spark_elastic")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    threading.excepthook = _say_what_ends_a_thread


def _say_what_ends_a_thread(ended: threading.ExceptHookArgs) -> None:
    """Log the error as Python does, but without credentials."""
    name = ended.thread.name if ended.thread is not None else "a thread"
    error = ended.exc_value if ended.exc_value is not None else ended.exc_type()
    _log.error("%s has ended with an error", name, exc_info=error)


if __name__ == "__main__":
    sys.exit(main())
