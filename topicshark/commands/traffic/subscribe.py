"""`topicshark subscribe`: prints what is published under a filter; at the prompt, under many."""

from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.traffic import clients
from topicshark.exit_codes import ExitCode

app = new_app()


@app.command(epilog="Example: topicshark subscribe 'home/*' --count 3 --timeout 10")
def subscribe(
    filter_text: Annotated[
        str | None, typer.Argument(metavar="FILTER", help="Topic filter. Default: prompt for filters.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many messages.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")] = None,
    unsubscribe: Annotated[bool, typer.Option("--unsubscribe", help="Unsubscribe before exiting.")] = False,
    dialect: clients.Dialect = "colon",
    to: clients.To = None,
    bind: clients.Bind = None,
    form: clients.Form = None,
    role: clients.Role = None,
    qos: clients.Qos = 1,
    fields: clients.Fields = None,
    resend_after: clients.ResendAfter = None,
    tries: clients.Tries = None,
    backoff: clients.Backoff = 1.5,
    window: clients.LongWindow = 0,
) -> None:
    """Subscribe to a filter and print the messages that arrive.

    Exit code 0: success. 1: the subscription was refused or never acknowledged, or fewer than --count messages
    arrived before --timeout.
    """
    client, make_node = clients.make_client(
        dialect, to, bind, form, role, resend_after, tries, backoff, qos, window=window
    )
    teller = clients.Teller()
    more = clients.fields_of(fields, client.compose.layout("subscribe"))
    with make_node(teller.tell) as node:
        if filter_text is None:
            from reference_broker.client.prompt import Prompt

            prompt = Prompt(client, clients.say, publishes=False, more=more)
            with clients.until_signal():
                clients.run_prompt(node, prompt, lambda: count is not None and teller.received >= count, timeout)
        else:
            with clients.until_signal():
                node.send(client.subscribe(filter_text.encode(), node.now(), more))
                _listen(node, teller, count, timeout)
            if unsubscribe and not teller.failed:
                node.send(client.unsubscribe(filter_text.encode(), node.now()))
        clients.finish(node, client)
    if count is not None and teller.received < count:
        clients.say(f"received {teller.received} of {count} messages")
        raise typer.Exit(ExitCode.FINDINGS)
    raise typer.Exit(teller.exit_code)


def _listen(node: Any, teller: clients.Teller, count: int | None, timeout: float | None) -> None:
    def is_over() -> bool:
        return bool(teller.failed) or (count is not None and teller.received >= count)

    node.run(is_over, timeout)
