// Archivist's plugin for OpenCode 1 and 2: `archivist install opencode` writes it, `uninstall` removes it.
import { spawn } from "node:child_process"

// Asks our hook, which answers within seconds. Whatever goes wrong, the session goes on without an answer.
const ask = (event, said) =>
  new Promise((resolve) => {
    let answer = ""
    const child = spawn("archivist", ["hook", "opencode", event], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 10_000,
    })
    child.on("error", () => resolve(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (answer += data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(answer).additionalContext ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(said))
  })

// The system prompt is made anew for each request; a session is briefed once.
const briefs = new Map()
const brief = (session, cwd) => {
  if (!briefs.has(session)) briefs.set(session, ask("session-start", { session_id: session, cwd }))
  return briefs.get(session)
}

// OpenCode 1
const server = async ({ directory: cwd }) => ({
  "experimental.chat.system.transform": async ({ sessionID }, output) => {
    const text = sessionID ? await brief(sessionID, cwd) : ""
    if (text) output.system.push(text)
  },
  "tool.execute.after": async ({ tool, sessionID, args }, output) => {
    const exit_code = output.metadata?.exit
    if (tool !== "bash" || !exit_code) return
    const tool_response = { output: output.output, exit_code }
    const said = { session_id: sessionID, cwd, tool_name: tool, tool_input: args, tool_response }
    const text = await ask("tool-failure", said)
    if (text) output.output += `\n\n${text}`
  },
  event: async ({ event }) => {
    if (event.type === "session.idle") await ask("stop", { session_id: event.properties.sessionID, cwd })
  },
})

// OpenCode 2
const setup = async (ctx) => {
  await ctx.session.hook("context", async (event) => {
    try {
      const { location } = await ctx.session.get({ sessionID: event.sessionID })
      const text = await brief(event.sessionID, location.directory)
      if (text) event.system.push({ type: "text", text })
    } catch {
      // A hook that fails would fail the request.
    }
  })
}

const plugin = { id: "archivist", server, setup }
export default plugin

// OpenCode before 1.3.4 calls every export that it sees as a plugin, and does not start over one that is an
// object; later ones read `default`. So import() resolves, by `then`, to a function to see and a hidden default.
export const then = (resolve) => resolve(Object.defineProperty({ archivist: server }, "default", { value: plugin }))
