import { createWriteStream, existsSync } from 'node:fs'

/** A file of what codex sends in a round, one JSON line each. */
interface RoundRecord {
  write(line: string): void
  /** Resolves when all of it is written, or cannot be; never rejects. */
  end(): Promise<void>
}

/** Opens one, to go on with it if it is there already; what goes wrong with it before its end is told. */
export function openRecord(path: string, onProblem: (problem: string) => void): RoundRecord {
  const isAgain = existsSync(path)
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
  // An attempt that was cut off may have left half a line.
  if (isAgain) stream.write('\n')
  let isOver = false
  stream.on('error', ({ message }) => {
    if (!isOver) onProblem(message)
  })
  return {
    write: line => void stream.write(`${line}\n`),
    async end() {
      isOver = true
      const closed = Promise.withResolvers<void>()
      stream.once('close', closed.resolve)
      stream.end()
      if (!stream.closed) await closed.promise
    },
  }
}
