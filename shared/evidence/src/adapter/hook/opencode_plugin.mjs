// Sends every tool call of OpenCode to the lane's socket before it runs, and does
// not let it run without an answer that allows it.
import fs from "node:fs"
import net from "node:net"

const SOCKET = "PREMATH_SOCKET"
const PATIENCE = 50_000
const ANSWER_MAX = 1 << 20

// The place is a Unix socket, or a file with a port and a token.
function placeOf(path) {
  if (!fs.statSync(path).isFile()) return { address: { path }, token: Buffer.alloc(0) }
  const [port, token] = fs.readFileSync(path, "utf8").trim().split(" ")
  return { address: { host: "127.0.0.1", port: Number(port) }, token: Buffer.from(token) }
}

// One connection an event: four bytes of length, then the bytes, both ways.
function send(event) {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(JSON.stringify(event))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(body.length)
    let answer = Buffer.alloc(0)
    const place = placeOf(SOCKET)
    const socket = net.createConnection(place.address)
    const timer = setTimeout(() => socket.destroy(new Error("no answer")), PATIENCE)
    socket.on("connect", () => socket.write(Buffer.concat([place.token, head, body])))
    socket.on("data", (part) => {
      answer = Buffer.concat([answer, part])
      if (answer.length > ANSWER_MAX) socket.destroy(new Error("too long"))
    })
    socket.on("error", reject)
    socket.on("close", () => {
      clearTimeout(timer)
      if (answer.length < 4 || answer.length !== 4 + answer.readUInt32BE(0)) {
        reject(new Error("no answer"))
      } else {
        resolve(answer.subarray(4).toString())
      }
    })
  })
}

// Returns the reason why the lane denies an event, where it does.
async function denial(event) {
  let answer
  try {
    answer = await send(event)
  } catch {
    return "The tool gate of the harness cannot be reached."
  }
  if (answer === "") return undefined
  try {
    return JSON.parse(answer).deny ?? "The tool gate denies this call."
  } catch {
    return "The answer of the tool gate cannot be read."
  }
}

// Returns the text that the lane gives the agent beside a call's result.
async function saying(event) {
  try {
    const answer = await send(event)
    return answer === "" ? undefined : JSON.parse(answer).say
  } catch {
    return undefined
  }
}

export const Premath = async () => {
  const parents = new Map()
  const of = (session) =>
    parents.has(session) ? { session, child: session } : { session }
  const failed = new Set()
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info?.parentID) {
        parents.set(info.id, info.parentID)
        const parent = parents.has(info.parentID) ? { parent: info.parentID } : {}
        await send({ kind: "session", session: info.id, child: info.id, ...parent }).catch(() => {})
      }
      const part = event.properties?.part
      if (event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error") {
        if (failed.has(part.callID)) return
        failed.add(part.callID)
        const call = { tool: part.tool, call: part.callID }
        await send({ kind: "failed", ...of(part.sessionID), ...call }).catch(() => {})
      }
      if (event.type === "session.idle") {
        await send({ kind: "idle", ...of(event.properties.sessionID) }).catch(() => {})
      }
    },
    "chat.message": async (input) => {
      await send({ kind: "prompt", ...of(input.sessionID) }).catch(() => {})
    },
    "tool.execute.before": async (input, output) => {
      const call = { tool: input.tool, call: input.callID, args: output.args ?? null }
      const reason = await denial({ kind: "before", ...of(input.sessionID), ...call })
      if (reason !== undefined) throw new Error(reason)
    },
    "tool.execute.after": async (input, output) => {
      const call = { tool: input.tool, call: input.callID, args: input.args ?? null }
      const result = { output: output.output ?? null }
      const said = await saying({ kind: "after", ...of(input.sessionID), ...call, ...result })
      if (said !== undefined) output.output = `${output.output ?? ""}\n\n${said}`
    },
  }
}
