// A tool for pi, which has no MCP servers: it writes a text into a file.

import { writeFileSync } from "node:fs";
import { Type } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.registerTool({
    name: "record",
    label: "Record",
    description: "Does a record.",
    parameters: Type.Object({ path: Type.String(), text: Type.String() }),
    async execute(_id, { path, text }) {
      writeFileSync(path, text);
      return { content: [{ type: "text", text: "recorded" }], details: {} };
    },
  });
}
