import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { CliContext } from '../../../src/doors/screen/cli-context.ts'
import { openJournal } from '../../../src/session/records/journal.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { recorded } from '../screen/samples.ts'

/** A work directory with its records, and a context whose output is kept. */
export interface Place extends AsyncDisposable {
  context: CliContext
  directory: string
  records: Records
  /** Ends what the context's commands do, as Ctrl-C would. */
  interrupt(): void
  /** What has been written to stdout so far. */
  written(): string
  /** Resolves once stdout holds the text; fails after 30 s. */
  until(text: string): Promise<void>
  /** Journals these events as a session, and answers its journal's path. */
  journal(id: string, events: readonly SessionEvent[]): Promise<string>
}

export async function makePlace(): Promise<Place> {
  const root = await mkdtemp(join(tmpdir(), 'cli-'))
  const [home, directory] = [join(root, 'home'), join(root, 'work')]
  for (const folder of [home, directory]) await mkdir(folder)
  const ending = new AbortController()
  const stdout = new PassThrough()
  let written = ''
  stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text
  })
  const context = cliContext({ env: {}, directory, home }, { stdout, signal: ending.signal })
  const records = await openRecords({ ...context, directory })
  return {
    context,
    directory,
    records,
    interrupt: () => ending.abort('SIGINT'),
    written: () => written,
    async until(text) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const check = () => written.includes(text) && resolve()
      stdout.on('data', check)
      check()
      const bound = new AbortController()
      const late = delay(30_000, null, { signal: bound.signal }).then(() => {
        throw new Error(`"${text}" was not written, only:\n${written}`)
      })
      await Promise.race([promise, late])
      bound.abort()
      late.catch(() => {})
      stdout.off('data', check)
    },
    async journal(id, events) {
      await mkdir(records.sessionFolder(id), { recursive: true })
      const path = join(records.sessionFolder(id), 'journal.ndjson')
      await using journal = openJournal(path)
      for (const event of recorded(events, id)) journal.append(event)
      return path
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}
