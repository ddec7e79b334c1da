"""A session over three providers, with tools, a cancelled call and a subagent. It needs no key: a simulator answers."""

import asyncio

from toolglot.runtime import CallChanged, RunFinished, Session, TextReceived, ToolContext, UpstreamModels
from toolglot.simulator import upstreams


async def population(city: str) -> str:
    """How many people live in a city.

    Args:
        city: Its name.
    """
    return f"{city} has 330,000 inhabitants"


async def ask_expert(question: str, context: ToolContext) -> str:
    """Ask an expert.

    Args:
        question: What to ask.
    """
    assert isinstance(context.session, Session)
    expert = context.session.spawn(model="mistral/mistral-large-latest", tools=[population])
    return (await expert.run(question)).text


async def main() -> None:
    models = UpstreamModels(upstreams())  # leave this out to call real providers with keys from the environment
    async with Session(model="anthropic/claude-opus-5", tools=[population, ask_expert], models=models) as session:
        answer = await session.run("How many people live in Bonn?")
        print(f"{answer.model}: {answer.text}")

        session.switch("openai/gpt-5.5")
        async for event in session.stream("And in Cologne?"):
            if isinstance(event, CallChanged):
                print(f"  {event.change.call.name}: {event.change.state}")
            elif isinstance(event, TextReceived):
                print(f"  … {event.text}")
            elif isinstance(event, RunFinished):
                print(f"{event.result.model}: {event.result.stop}")

        running = asyncio.ensure_future(session.run("Ask the expert."))
        await asyncio.sleep(0)
        await session.cancel("Never mind.")
        print("cancelled:", (await running).stop)

        session.switch("mistral/mistral-large-latest")
        answer = await session.run("Well?")
        print(f"{answer.model}: {answer.text}")
        print(f"{session.usage.input_tokens} tokens read, {len(session.history.ledger)} calls, all of them answered")
    await models.close()


if __name__ == "__main__":
    asyncio.run(main())
