// The JavaScript SDKs as clients with tools: each runs a loop of its own against a server, and the tools really run.
//
// A question is a line of JSON on stdin, its answer a line on stdout, in order:
//   {"client": "ai/anthropic", "url": "http://127.0.0.1:1", "model": "mistral/…", "stream": true}
//   {"text", "ran": ["Bonn", …], "error"}

import { createInterface } from 'node:readline';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { z } from 'zod';

const PATIENCE = 30_000;
const MOST_STEPS = 5;
const PROMPT = 'What is the weather?';
const city = z.object({ city: z.string() });

globalThis.AI_SDK_LOG_WARNINGS = false;
for (const method of ['log', 'info', 'debug', 'warn']) console[method] = console.error;

function weather(got) {
  return async ({ city: name }) => {
    got.ran.push(name);
    return `7 degrees in ${name}`;
  };
}

// --- Vercel ai ---------------------------------------------------------------------------------------

function vercel(modelOf) {
  return async (question, got) => {
    const request = {
      model: modelOf(question),
      tools: { get_weather: tool({ description: 'The weather', inputSchema: city, execute: weather(got) }) },
      prompt: PROMPT,
      maxRetries: 0,
      stopWhen: stepCountIs(MOST_STEPS),
    };
    if (!question.stream) {
      got.text = (await generateText(request)).text;
      return;
    }
    const failures = [];
    const result = streamText({ ...request, onError: ({ error }) => failures.push(error) });
    // Where the first step fails the text is refused for want of any: what went wrong was reported before.
    got.text = await Promise.resolve(result.text).catch((error) => {
      throw failures[0] ?? error;
    });
    if (failures.length) throw failures[0];
  };
}

const openai = ({ url }) => createOpenAI({ apiKey: 'key', baseURL: `${url}/v1` });

// --- Anthropic's own ---------------------------------------------------------------------------------

async function toolRunner({ url, model, stream }, got) {
  const client = new Anthropic({ apiKey: 'key', baseURL: url, maxRetries: 0 });
  const runner = client.beta.messages.toolRunner({
    model,
    max_tokens: 4000,
    messages: [{ role: 'user', content: PROMPT }],
    tools: [betaZodTool({ name: 'get_weather', description: 'The weather', inputSchema: city, run: weather(got) })],
    max_iterations: MOST_STEPS,
    stream,
  });
  let last;
  for await (const message of runner) last = stream ? await message.finalMessage() : message;
  got.text = last.content.map((block) => block.text ?? '').join('');
}

// --- OpenAI's own, over a WebSocket ------------------------------------------------------------------

async function responsesSocket({ url, model }, got) {
  const run = weather(got);
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const request = {
    type: 'response.create',
    model,
    store: false,
    tools: [{ type: 'function', name: 'get_weather', description: 'The weather', parameters, strict: false }],
  };
  const socket = new ResponsesWS(new OpenAI({ apiKey: 'key', baseURL: `${url}/v1` }));
  try {
    socket.send({ ...request, input: PROMPT });
    for await (const event of socket) {
      // The SDK's error has the gateway's event, whose status is that of HTTP.
      if (event.type === 'error') throw Object.assign(event.error, { status: event.error.error?.status });
      if (event.type !== 'message') continue;
      const { type, response } = event.message;
      if (type === 'response.failed' || type === 'response.incomplete') throw new Error(JSON.stringify(response));
      if (type !== 'response.completed') continue;
      const calls = response.output.filter((item) => item.type === 'function_call');
      if (calls.length === 0) {
        got.text = response.output.flatMap((item) => item.content ?? []).map((part) => part.text ?? '').join('');
        return;
      }
      const input = [];
      for (const { call_id, arguments: text } of calls) {
        input.push({ type: 'function_call_output', call_id, output: await run(JSON.parse(text)) });
      }
      socket.send({ ...request, input, previous_response_id: response.id });
    }
    throw new Error('the socket closed before the answer');
  } finally {
    socket.close();
  }
}

const CLIENTS = {
  'ai/openai.chat': vercel((question) => openai(question).chat(question.model)),
  'ai/openai.responses': vercel((question) => openai(question).responses(question.model)),
  'ai/anthropic': vercel(({ url, model }) => createAnthropic({ apiKey: 'key', baseURL: `${url}/v1` })(model)),
  'ai/google': vercel(({ url, model }) => createGoogleGenerativeAI({ apiKey: 'key', baseURL: `${url}/v1beta` })(model)),
  'anthropic/toolRunner': toolRunner,
  'openai/ResponsesWS': responsesSocket,
};

async function answer(question) {
  const got = { text: '', ran: [], error: null };
  let timer;
  const tired = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error('the loop never came to an end')), PATIENCE);
  });
  try {
    await Promise.race([CLIENTS[question.client](question, got), tired]);
  } catch (error) {
    const message = error?.message ?? JSON.stringify(error);
    got.error = { message, status: error?.statusCode ?? error?.status };
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
