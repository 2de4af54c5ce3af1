"""`topicshark publish`: one message, or as many as are typed at the prompt, until the broker acknowledges each."""

from typing import Annotated

import typer

from topicshark.app import new_app
from topicshark.commands.traffic import clients

app = new_app()


@app.command(epilog="Example: topicshark publish --dialect colon --to 127.0.0.1:50000 home/fan ON --retain")
def publish(
    topic: Annotated[str | None, typer.Argument(help="Topic. Default: prompt for topics and payloads.")] = None,
    payload: Annotated[str, typer.Argument(help="Payload of the message.")] = "",
    retain: Annotated[
        bool | None, typer.Option("--retain/--no-retain", help="Ask the broker to retain the message.")
    ] = None,
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
    mistake: clients.Mistake = None,
) -> None:
    """Publish a message and resend it until it is acknowledged.

    Exit code 0: every request was acknowledged, or the dialect has no acknowledgements. 1: a request was refused or
    never acknowledged.
    """
    client, make_node = clients.make_client(
        dialect, to, bind, form, role, resend_after, tries, backoff, qos, mistake, window, is_subscriber=False
    )
    teller = clients.Teller(acks_on_stdout=True)
    if topic is not None:
        more = clients.fields_of(fields, client.compose.layout("publish"))
    with make_node(teller.tell) as node:
        if topic is not None:
            node.send(client.publish(topic.encode(), payload.encode(), node.now(), bool(retain), more))
            if client.is_idle:
                clients.say(f"sent; {client.dialect.name} has no acknowledgement for it")
        else:
            from reference_broker.client.prompt import Prompt

            with clients.until_signal():
                clients.run_prompt(node, Prompt(client, clients.say, subscribes=False, retain=retain))
        clients.finish(node, client)
    raise typer.Exit(teller.exit_code)
