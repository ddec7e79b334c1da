"""One conversation over three providers: ids, pairs and a cancelled call survive every switch."""

from toolglot import History, Text, ToolCall, ToolResult, Turn, profiles
from toolglot.conversation import ids

history = History()
history.append(Turn("user", (Text("What is in a.txt and b.txt?"),)))

# Kimi calls two tools. Anthropic would not accept its ids.
with history.begin_turn("kimi") as turn:
    turn.append(
        Turn(
            "assistant",
            (
                ToolCall("functions.read_file:0", "read_file", {"path": "a.txt"}),
                ToolCall("functions.read_file:1", "read_file", {"path": "b.txt"}),
            ),
        )
    )
    history.append(Turn("tool", (ToolResult("functions.read_file:0", "hello"),)))
    history.switch("anthropic")  # requested during the turn: it takes effect after it
    turn.cancel("The user pressed Ctrl-C.")

print("next turn goes to:", history.target)
for interaction in history.ledger:
    print(f"{interaction.id}  {interaction.name}{interaction.call.arguments}  {interaction.status}")

# The same calls, under ids that each target accepts.
for target, model in [("anthropic", ""), ("openai", ""), ("mistral", ""), ("kimi", "kimi-k2")]:
    projection = ids.Projection(profiles.get(target, model), policy="canonical")
    print(f"{target:>10}:", *(projection.add(found.call) for found in history.ledger))

print(history.report)
