// The JavaScript SDKs compact a conversation, and go on with what they got: one line of JSON on stdout.
//
//   node compact.mjs http://127.0.0.1:1 gemini

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const [url, model] = process.argv.slice(2);
const PATIENCE = 30_000;

async function openai() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0, timeout: PATIENCE });
  const asked = { role: 'user', content: 'Read main.py' };
  const stream = client.responses.stream({ model, input: [asked, { type: 'compaction_trigger' }], store: false });
  const compacted = await stream.finalResponse();
  const whole = await client.responses.compact({ model, input: [asked] });
  const next = await client.responses.create({ model, input: [...whole.output, { role: 'user', content: 'Go on' }] });
  return { streamed: compacted.output.map((item) => item.type), whole: whole.output.map((item) => item.type), text: next.output_text };
}

async function anthropic() {
  const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0, timeout: PATIENCE });
  const edit = { type: 'compact_20260112', trigger: { type: 'input_tokens', value: 1 } };
  const messages = [{ role: 'user', content: 'Read main.py' }];
  const request = { model, max_tokens: 500, messages, context_management: { edits: [edit] }, betas: ['compact-2026-01-12'] };
  const message = await client.beta.messages.stream(request).finalMessage();
  messages.push({ role: 'assistant', content: message.content }, { role: 'user', content: 'Go on' });
  const next = await client.beta.messages.create({ model, max_tokens: 500, messages, betas: ['compact-2026-01-12'] });
  return {
    streamed: message.content.map((block) => block.type),
    summary: message.content[0].content,
    iterations: message.usage.iterations.map((entry) => entry.type),
    text: next.content.map((block) => block.text).join(''),
  };
}

console.log(JSON.stringify({ openai: await openai(), anthropic: await anthropic() }));
