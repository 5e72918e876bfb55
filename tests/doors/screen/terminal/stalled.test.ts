import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { spawn } from '@lydell/node-pty'
import { expect, test } from 'vitest'

const OUTPUT = fileURLToPath(new URL('../../../../src/doors/screen/terminal/output.ts', import.meta.url))

/** Draws far more than a terminal takes at once, then tells over the network, which does not wait, that it lives. */
const PROGRAM = `
  import { connect } from 'node:net'
  import { TerminalOutput } from ${JSON.stringify(OUTPUT)}
  const output = new TerminalOutput({ stream: process.stdout, narrowing: 'breaks' })
  for (let frame = 0; frame < 100; frame++) if (!output.isFull) output.write('x'.repeat(200_000))
  const socket = connect(Number(process.env.PORT), '127.0.0.1')
  socket.write(\`full: \${output.isFull}, bytes: \${output.bytes}\`)
  await output.ready()
  output.write('the end')
  // It ends with the connection.
  socket.resume()
`

test('a terminal that stops to read does not stop the program, and no frames pile up for it', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  const env = { ...process.env, PORT: String(address.port) }
  const terminal = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], { cols: 80, rows: 24, env })
  try {
    terminal.pause()
    const [socket] = await once(server, 'connection', { signal: AbortSignal.timeout(20_000) })
    const [said] = await once(socket, 'data')
    expect(String(said)).toBe('full: true, bytes: 200000')
    let shown = ''
    const { promise: read, resolve } = Promise.withResolvers<void>()
    terminal.onData(text => {
      shown += text
      if (shown.endsWith('the end')) resolve()
    })
    const ended = new Promise(resolve => terminal.onExit(resolve))
    terminal.resume()
    // What is on its way when the program ends may be lost.
    await Promise.race([read, ended])
    socket.end()
    await ended
    expect(shown.replace(/^x*/, '')).toBe('the end')
  } finally {
    terminal.kill('SIGKILL')
    server.close()
  }
})
