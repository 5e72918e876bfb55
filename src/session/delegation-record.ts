import { createWriteStream } from 'node:fs'

/** A file that lines are added to; what goes wrong with it before it is disposed of is told. */
export function openRecord(
  path: string,
  onProblem: (problem: string) => void,
): AsyncDisposable & { write(line: string): void } {
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
  let isOver = false
  stream.on('error', ({ message }) => {
    if (!isOver) onProblem(message)
  })
  return {
    write: line => void stream.write(`${line}\n`),
    async [Symbol.asyncDispose]() {
      isOver = true
      const closed = Promise.withResolvers<void>()
      stream.once('close', closed.resolve)
      stream.end()
      if (!stream.closed) await closed.promise
    },
  }
}
