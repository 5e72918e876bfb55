// The least that can drive codex for so many rounds: each app-server is as far as `thread/start` before the turn before it
// has ended, and nothing is read, kept or checked. Its argument is a file with `codex`, `args`, `directory`, `rounds`, and
// the params of `initialize`, `thread/start` and `turn/start`; they are what codemachine sent.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

const { codex, args, directory, rounds, initialize, thread, turn } = JSON.parse(readFileSync(process.argv[2], 'utf8'))

let next = open()
for (let round = 1; round <= rounds; round++) {
  const { request, completed, end, ready } = next
  const threadId = await ready
  await request('turn/start', { ...turn, threadId })
  if (round < rounds) next = open()
  await completed
  end()
}

/** Starts an app-server; `ready` resolves with the id of its thread. */
function open() {
  const child = spawn(codex, args, { cwd: directory, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  const waiting = new Map()
  const turnEnd = Promise.withResolvers()
  const send = message => child.stdin.write(`${JSON.stringify(message)}\n`)
  const request = (method, params) => {
    const { promise, resolve } = Promise.withResolvers()
    waiting.set(waiting.size, resolve)
    send({ id: waiting.size - 1, method, params })
    return promise
  }
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      const { id, result, method } = JSON.parse(line)
      if (method === undefined) waiting.get(id)(result)
      else if (method === 'turn/completed') turnEnd.resolve()
    }
  })
  const ready = request('initialize', initialize).then(async () => {
    send({ method: 'initialized' })
    return (await request('thread/start', thread)).thread.id
  })
  return { request, completed: turnEnd.promise, ready, end: () => child.stdin.end() }
}
