// A server that tells the time before and after a model's reply, and that a timer runs.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";

const now = () => new Date().toISOString().slice(0, 19);
const body = JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi." }] });
const headers = { "content-type": "application/json" };

async function tell(text) {
  const before = now();
  if (text === "ask") {
    await (await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, { method: "POST", headers, body })).text();
  }
  const started = performance.now();
  await new Promise((done) => setTimeout(done, 20));
  const took = performance.now() - started;
  const told = execFileSync("date", ["+%Y-%m-%dT%H:%M:%S"]).toString().trim();
  return `${before} ${now()} ${told} ${took >= 19 && took < 1000 ? "True" : "False"}`;
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const { text } = JSON.parse(Buffer.concat(parts).toString());
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ reply: await tell(text) }));
}).listen(Number(process.env.PORT), "127.0.0.1");
