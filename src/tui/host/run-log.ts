import { createWriteStream } from 'node:fs'
import { rename } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { describeError } from '../../base/errors.ts'
import type { View } from '../../core/events/events.ts'
import type { Records } from '../../records/records.ts'
import type { Display } from '../cli-context.ts'
import { plainView } from '../plain-view.ts'

/** Where a run is shown that goes on without its screen: in the lines of `run.log` in its records. */
export class RunLog implements Pick<Display, 'view' | 'say' | 'card'>, AsyncDisposable {
  readonly path: string
  readonly stream: Writable
  readonly view: View

  private constructor(path: string) {
    this.path = path
    this.stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
    // What a full disk does not take is in the journal.
    this.stream.on('error', () => {})
    this.view = plainView(text => void this.stream.write(text), { colour: false })
  }

  /** That of the run before is kept beside it. */
  static async open({ runLog }: Records): Promise<RunLog> {
    await rename(runLog, `${runLog}.1`).catch(() => {})
    return new RunLog(runLog)
  }

  say(text: string): void {
    this.stream.write(`${text}\n`)
  }

  card(lines: Parameters<Display['card']>[0]): void {
    this.say(['', ...lines({ columns: COLUMNS }).map(({ text }) => text), ''].join('\n'))
  }

  /** Says what was thrown; returns its exit code. */
  fail(error: unknown): number {
    const { text, exitCode } = describeError(error)
    this.stream.write(text)
    return exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.stream.destroyed) return
    await new Promise<void>(resolve => this.stream.end(() => resolve()))
  }
}

const COLUMNS = 100
