"""A worker that is killed with SIGKILL while an address has its message: it is sent again under its id."""

import time
from pathlib import Path

from standardwebhooks.webhooks import Webhook as Verifier

from tests.annotation.installation import Installation
from tests.webhook_receiver import Receiver


def test_a_message_whose_worker_was_killed_is_sent_again(tmp_path: Path) -> None:
    with Receiver() as receiver:
        here = Installation(tmp_path, HYPAC_PRIVATE_HOSTS=f"127.0.0.1:{receiver.port}")
        module = ("-m", "tests.annotation.outside.webhooks.killed_sender")
        webhook, secret = here.finish(*module, "prepare", receiver.url).split()
        killed: list[int] = []
        receiver.script(lambda: killed.append(sender.pid) or sender.kill() or sender.wait(300))
        sender = here.start(*module, "send", webhook)
        sender.communicate(timeout=900)
        assert killed == [sender.pid]
        assert sender.returncode == -9
        until = time.monotonic() + 600
        while here.finish(*module, "send", webhook).split() != ["1"]:
            assert time.monotonic() < until, "it is never due again"
        assert here.finish(*module, "send", webhook).split() == ["0"]
        first, second = receiver.received
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        for request in (first, second):
            assert Verifier(secret).verify(request.body, request.headers)["type"] == "run.completed"
