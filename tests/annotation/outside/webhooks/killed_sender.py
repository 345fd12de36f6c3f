"""A sender of webhooks to be killed. `prepare URL` stores a message, `send WEBHOOK` sends what is due.

Run as `python -m tests.annotation.outside.webhooks.killed_sender ...` on a migrated database.
"""

import sys

import django


def prepare(url: str) -> None:
    from annotation.common import events
    from annotation.outside.webhooks.manage import create_webhook
    from testbed.factories import make_project

    project = make_project()
    webhook, secret = create_webhook(
        project=project, actor=project.created_by, url=url, events=["run.completed"]
    )
    events.emit(project=project, event="run.completed", data={"run": 1})
    print(webhook.pk, secret)


def send(webhook_id: int) -> None:
    from annotation.outside.webhooks import sending

    sending.CLAIM_SECONDS = 1
    print(sending.send_due(webhook_id))


if __name__ == "__main__":
    django.setup()
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
    else:
        send(int(sys.argv[2]))
