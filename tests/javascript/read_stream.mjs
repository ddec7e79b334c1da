// The JavaScript SDKs as readers of streams: bytes in, what the SDK assembled out.
//
// A question is a line of JSON on stdin, its answer a line on stdout, in order:
//   {"reader": "ai/anthropic", "body": base64, "cuts": [3, 70], "tools": ["look"], "custom": ["patch"]}
//   {"text", "reasoning", "calls": [{"id", "name", "input", "pieces"}], "finish", "usage": {"input", "output"},
//    "opaque": [signatures and encrypted reasoning], "error"}
// `cuts` are the byte positions where one piece of the network ends; `custom` names the tools that take free text.
// `input` is the SDK's own value; `unparsed` is there instead where the SDK gives text that is no JSON. `pieces` is
// what the SDK's events of a growing input add up to, where it has such events. A call that the SDK itself calls
// invalid is an error and not among the calls.
//
// Law: no socket is opened. Each SDK gets the bytes from its own `fetch` option, and the global one is taken away.

import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI, openai as openaiTools } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { jsonSchema, streamText, tool } from 'ai';
import OpenAI from 'openai';

const NOWHERE = 'http://nowhere.invalid';
const PATIENCE = 20_000;
const ANYTHING = { type: 'object', properties: {}, additionalProperties: true };

globalThis.AI_SDK_LOG_WARNINGS = false;
globalThis.fetch = () => {
  throw new Error('the global fetch was used: a reader must read only its own bytes');
};
for (const method of ['log', 'info', 'debug']) console[method] = console.error;

// --- the bytes ---------------------------------------------------------------------------------------

function piecesOf({ body, cuts = [] }) {
  const bytes = Buffer.from(body, 'base64');
  const edges = [0, ...cuts, bytes.length];
  return edges.slice(1).map((end, at) => new Uint8Array(bytes.subarray(edges[at], end)));
}

function fetchOf(question) {
  return async () => {
    const pieces = piecesOf(question);
    const stream = new ReadableStream({
      pull(controller) {
        if (pieces.length) controller.enqueue(pieces.shift());
        else controller.close();
      },
    });
    return new Response(stream, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };
}

// --- what an SDK assembled ---------------------------------------------------------------------------

const nothing = () => ({ text: '', reasoning: '', calls: [], finish: null, usage: null, opaque: [], error: null });

function wordsOf(error) {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return typeof error === 'string' ? error : JSON.stringify(error);
}

function complain(got, error) {
  got.error = got.error === null ? wordsOf(error) : `${got.error} | ${wordsOf(error)}`;
}

const callOf = (id, name, input, pieces) => ({ id, name, ...input, pieces });

/** The input of a call that an SDK leaves as text. */
function parsed(text) {
  try {
    return { input: JSON.parse(text) };
  } catch {
    return { unparsed: text };
  }
}

// --- Vercel ai ---------------------------------------------------------------------------------------

function vercel(modelOf, customTool) {
  return async (question, got) => {
    const tools = {};
    for (const name of question.tools ?? []) tools[name] = tool({ inputSchema: jsonSchema(ANYTHING) });
    for (const name of question.custom ?? []) tools[name] = customTool(name);
    const model = modelOf({ apiKey: 'none', fetch: fetchOf(question) });
    const result = streamText({ model, tools, prompt: 'go', maxRetries: 0, onError() {} });
    const growing = new Map();
    for await (const part of result.fullStream) takePart(part, got, growing);
  };
}

const OPAQUE = ['signature', 'redactedData', 'thoughtSignature', 'reasoningEncryptedContent'];

/** What only the provider can read: it comes with the start, with pieces or with the end, sometimes more than once. */
function takeOpaque({ providerMetadata }, got) {
  for (const fields of Object.values(providerMetadata ?? {})) {
    for (const value of OPAQUE.map((name) => fields?.[name])) {
      if (value && !got.opaque.includes(value)) got.opaque.push(value);
    }
  }
}

function takePart(part, got, growing) {
  takeOpaque(part, got);
  switch (part.type) {
    case 'text-delta':
      got.text += part.text;
      break;
    case 'reasoning-delta':
      got.reasoning += part.text;
      break;
    case 'tool-input-start':
      growing.set(part.id, '');
      break;
    case 'tool-input-delta':
      growing.set(part.id, growing.get(part.id) + part.delta);
      break;
    case 'tool-call':
      if (part.invalid) complain(got, part.error);
      else got.calls.push(callOf(part.toolCallId, part.toolName, { input: part.input }, growing.get(part.toolCallId)));
      break;
    case 'error':
      complain(got, part.error);
      break;
    case 'finish':
      got.finish = part.finishReason;
      got.usage = { input: part.totalUsage.inputTokens, output: part.totalUsage.outputTokens };
  }
}

const noCustomTool = (name) => {
  throw new Error(`this protocol has no free-text tools: ${name}`);
};

// --- the providers' own ------------------------------------------------------------------------------

async function anthropic(question, got) {
  const client = new Anthropic({ apiKey: 'none', baseURL: NOWHERE, maxRetries: 0, fetch: fetchOf(question) });
  const stream = client.messages.stream({
    model: 'any',
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'go' }],
    tools: (question.tools ?? []).map((name) => ({ name, input_schema: ANYTHING })),
  });
  let growing = '';
  const pieces = [];
  stream.on('inputJson', (delta) => (growing += delta));
  stream.on('contentBlock', (block) => {
    if (block.type === 'tool_use') pieces.push(growing);
    growing = '';
  });
  const message = await stream.finalMessage();
  for (const block of message.content) {
    if (block.type === 'text') got.text += block.text;
    if (block.type === 'thinking') {
      got.reasoning += block.thinking;
      if (block.signature) got.opaque.push(block.signature);
    }
    if (block.type === 'redacted_thinking') got.opaque.push(block.data);
    if (block.type === 'tool_use') got.calls.push(callOf(block.id, block.name, { input: block.input }, pieces.shift()));
  }
  got.finish = message.stop_reason;
  got.usage = { input: message.usage.input_tokens, output: message.usage.output_tokens };
}

const openaiClient = (question) =>
  new OpenAI({ apiKey: 'none', baseURL: NOWHERE, maxRetries: 0, fetch: fetchOf(question) });

const chatRequest = (question) => ({
  model: 'any',
  messages: [{ role: 'user', content: 'go' }],
  stream_options: { include_usage: true },
  tools: [
    ...(question.tools ?? []).map((name) => ({ type: 'function', function: { name, parameters: ANYTHING } })),
    ...(question.custom ?? []).map((name) => ({ type: 'custom', custom: { name } })),
  ],
});

async function openaiChat(question, got) {
  const stream = openaiClient(question).chat.completions.stream(chatRequest(question));
  // The helper has no field for reasoning, which only other providers of this protocol send: its chunks have it.
  stream.on('chunk', (chunk) => (got.reasoning += chunk.choices[0]?.delta?.reasoning_content ?? ''));
  const done = new Map();
  stream.on('tool_calls.function.arguments.done', (event) => done.set(event.index, event.arguments));
  const completion = await stream.finalChatCompletion();
  const { message, finish_reason: finish } = completion.choices[0];
  got.text = message.content ?? '';
  (message.tool_calls ?? []).forEach((call, index) => {
    got.calls.push(callOf(call.id, call.function.name, parsed(call.function.arguments), done.get(index)));
  });
  got.finish = finish;
  got.usage = completion.usage && { input: completion.usage.prompt_tokens, output: completion.usage.completion_tokens };
}

/** The chunks as the SDK gives them, for free-text calls: its helper refuses every stream that has one. */
async function openaiChatChunks(question, got) {
  const stream = await openaiClient(question).chat.completions.create({ ...chatRequest(question), stream: true });
  for await (const { choices, usage } of stream) {
    if (usage) got.usage = { input: usage.prompt_tokens, output: usage.completion_tokens };
    for (const { delta, finish_reason: finish } of choices) {
      got.text += delta.content ?? '';
      got.finish = finish ?? got.finish;
      for (const { index, id, type, custom } of delta.tool_calls ?? []) {
        if (type && type !== 'custom') throw new Error(`a call of type ${type} where only free text was requested`);
        const call = (got.calls[index] ??= { id, name: '', input: '' });
        call.name += custom?.name ?? '';
        call.input += custom?.input ?? '';
      }
    }
  }
}

async function openaiResponses(question, got) {
  const stream = openaiClient(question).responses.stream({
    model: 'any',
    input: 'go',
    tools: [
      ...(question.tools ?? []).map((name) => ({ type: 'function', name, parameters: ANYTHING, strict: false })),
      ...(question.custom ?? []).map((name) => ({ type: 'custom', name })),
    ],
  });
  const growing = new Map();
  const grow = ({ item_id: item, delta }) => growing.set(item, (growing.get(item) ?? '') + delta);
  stream.on('response.function_call_arguments.delta', grow);
  stream.on('response.custom_tool_call_input.delta', grow);
  let streamed = '';
  const done = [];
  stream.on('response.output_text.delta', (event) => (streamed += event.delta));
  stream.on('response.output_item.done', (event) => (done[event.output_index] = event.item));
  const response = await stream.finalResponse();
  for (const item of response.output) takeItem(item, got, growing);
  if (response.status === 'failed') throw new Error(response.error?.message ?? 'failed without a reason');
  // The helper takes the last event's word for everything; other clients go by the deltas and the items that are done.
  if (streamed !== got.text) throw new Error(`the deltas say ${streamed}, the response ${got.text}`);
  const isWhole = (item) => item.status !== 'incomplete';
  if (!sameItems(done.filter(isWhole), response.output.filter(isWhole))) {
    throw new Error(`done are ${JSON.stringify(done)}, the response has ${JSON.stringify(response.output)}`);
  }
  got.finish = response.incomplete_details?.reason ?? response.status;
  got.usage = response.usage && { input: response.usage.input_tokens, output: response.usage.output_tokens };
}

// The helper adds what it parsed to the items of the response.
const bare = ({ parsed_arguments: _, content, ...item }) =>
  content ? { ...item, content: content.map(({ parsed: __, ...part }) => part) } : item;

const sameItems = (some, others) => isDeepStrictEqual(some.map(bare), others.map(bare));

function takeItem(item, got, growing) {
  if (item.type === 'message') for (const part of item.content) got.text += part.text ?? '';
  if (item.type === 'reasoning') {
    for (const part of [...(item.summary ?? []), ...(item.content ?? [])]) got.reasoning += part.text;
    if (item.encrypted_content) got.opaque.push(item.encrypted_content);
  }
  if (item.status === 'incomplete') return;
  const call = (input) => got.calls.push(callOf(item.call_id, item.name, input, growing.get(item.id)));
  if (item.type === 'function_call') call(parsed(item.arguments));
  if (item.type === 'custom_tool_call') call({ input: item.input });
}

async function googleGenai(question, got) {
  const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { fetch: fetchOf(question) } });
  const functionDeclarations = (question.tools ?? []).map((name) => ({ name, parametersJsonSchema: ANYTHING }));
  const stream = await client.models.generateContentStream({
    model: 'any',
    contents: 'go',
    config: { tools: [{ functionDeclarations }] },
  });
  for await (const chunk of stream) {
    const candidate = chunk.candidates?.[0];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.text) got[part.thought ? 'reasoning' : 'text'] += part.text;
      if (part.thoughtSignature) got.opaque.push(part.thoughtSignature);
    }
    for (const call of chunk.functionCalls ?? []) got.calls.push(callOf(call.id, call.name, { input: call.args }));
    got.finish = candidate?.finishReason ?? got.finish;
    const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = chunk.usageMetadata ?? {};
    if (chunk.usageMetadata) {
      got.usage = { input: promptTokenCount, output: (candidatesTokenCount ?? 0) + (thoughtsTokenCount ?? 0) };
    }
  }
}

const READERS = {
  'ai/anthropic': vercel((settings) => createAnthropic(settings)('any'), noCustomTool),
  'ai/openai.chat': vercel((settings) => createOpenAI(settings).chat('any'), noCustomTool),
  'ai/openai.responses': vercel(
    (settings) => createOpenAI(settings).responses('any'),
    (name) => openaiTools.tools.customTool({ name }),
  ),
  'ai/google': vercel((settings) => createGoogleGenerativeAI(settings)('any'), noCustomTool),
  anthropic,
  'openai/chat': openaiChat,
  'openai/chat.chunks': openaiChatChunks,
  'openai/responses': openaiResponses,
  'google/genai': googleGenai,
};

// --- questions and answers ---------------------------------------------------------------------------

async function answer(question) {
  const got = nothing();
  let timer;
  const tired = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error('the reader never came to an end')), PATIENCE);
  });
  try {
    await Promise.race([READERS[question.reader](question, got), tired]);
  } catch (error) {
    complain(got, error);
  } finally {
    clearTimeout(timer);
  }
  return got;
}

// An SDK may refuse promises that are not awaited when a stream fails: the answer has the error already.
process.on('unhandledRejection', () => {});

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
