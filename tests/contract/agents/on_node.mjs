// An agent on @anthropic-ai/sdk, one JSON object a line; its argument says whether it streams.
import readline from "node:readline";

import Anthropic from "@anthropic-ai/sdk";

const string = { type: "string" };
const tools = {
  get_weather: [{ city: string }, ({ city }) => `It is clear in ${city}.`],
  search: [{ destination: string }, ({ destination }) => `AA123 to ${destination} for $129`],
  book: [{ flight_id: string, date: string }, ({ flight_id, date }) => `${flight_id} is booked for ${date}.`],
};
const client = new Anthropic();
const messages = [];

async function reply(text) {
  messages.push({ role: "user", content: text });
  for (;;) {
    const request = {
      model: "claude-sonnet-5-5",
      max_tokens: 1024,
      tools: Object.entries(tools).map(([name, [properties]]) => ({
        name,
        description: name,
        input_schema: { type: "object", properties, required: Object.keys(properties) },
      })),
      messages,
    };
    const message = process.argv[2] === "streaming"
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    messages.push({ role: "assistant", content: message.content });
    if (message.stop_reason !== "tool_use") {
      return message.content.map((part) => part.text ?? "").join("");
    }
    const uses = message.content.filter((part) => part.type === "tool_use");
    const content = uses.map(({ id, name, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: tools[name][1](input),
    }));
    messages.push({ role: "user", content });
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const turn = JSON.parse(line);
  if (turn.type === "turn") {
    console.log(JSON.stringify({ type: "reply", text: await reply(turn.text) }));
  }
}
