import { createWriteStream } from 'node:fs'
import { rename } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { describeError, unreachable } from '../../base/errors.ts'
import type { PlanStep, SessionState, View } from '../../core/state/state.ts'
import type { Records } from '../../session/records/records.ts'
import { describeEvent } from '../../tell/words/event.ts'
import { describePlanChange } from '../../tell/words/item.ts'
import { type Description, describe, type Tone } from '../../tell/words/names.ts'
import { Countdown, formatTime } from '../../tell/words/numbers.ts'
import { waitEndOf } from '../../tell/words/outcome.ts'
import type { Display } from './cli-context.ts'

const CONTINUATION = ' '.repeat('22:41:07  '.length)

/**
 * Writes a line for each thing that happened, for a person who reads a log: local time, what, how long, how many
 * tokens. What belongs to a thing follows on indented lines. A wait is counted down, a line every 15 minutes. `write`
 * gets whole lines, with their newline. `asks`: what is to be decided is said where it is asked, and here only its title.
 */
export function plainView(
  write: (text: string) => void,
  { colour, asks = false }: { colour: boolean; asks?: boolean },
): View {
  let countdown: Countdown | null = null
  let plan: readonly PlanStep[] = []
  const paint = (text: string, tone: Tone) => (colour ? paintTone(text, tone) : text)
  const say = (at: number, { text, more, tone, moreTone = tone }: Description) => {
    const time = paint(formatTime(at), 'quiet')
    const lines = [`${time}  ${paint(text, tone)}`, ...more.map(line => `${CONTINUATION}${paint(line, moreTone)}`)]
    write(`${lines.map(line => line.trimEnd()).join('\n')}\n`)
  }
  return {
    event(event, state) {
      const at = Date.parse(event.at)
      countdown = countdownOf(state, countdown, at)
      const before = plan
      plan = state.plan
      const description =
        event.type === 'plan-updated' ? describeSteps(before, event.steps) : describeEvent(event, state)
      if (description === null) return
      const isAskedBelow = asks && event.type === 'decision-asked' && isToldWhereAsked(event)
      say(at, isAskedBelow ? { ...description, more: [] } : description)
    },
    live(event) {
      switch (event.type) {
        case 'still-waiting': {
          const text = countdown?.tick(event.leftMs)
          if (countdown && text) say(countdown.until - event.leftMs, describe(text, 'quiet'))
          break
        }
        // Comes again, whole, as `item-completed`.
        case 'item-started':
        case 'text-delta':
        case 'output-delta':
          break
        default:
          unreachable(event)
      }
    },
  }
}

/** Which steps of a plan have changed; null if none has. */
function describeSteps(before: readonly PlanStep[], after: readonly PlanStep[]): Description | null {
  const changed = describePlanChange(before, after)
  return changed === null ? null : describe(`plan  ${changed}`)
}

/** The countdown after an event at the time `at`: the same one as long as it is the same wait. */
function countdownOf(state: SessionState, countdown: Countdown | null, at: number): Countdown | null {
  const end = waitEndOf(state) ?? defaultAt(state)
  if (end === null) return null
  return end === countdown?.until ? countdown : new Countdown(end, end - at)
}

/** When what waits for a person goes on by itself: Unix time, ms; null if it does not. */
function defaultAt({ decision, ended, holdEnd }: SessionState): number | null {
  if (holdEnd !== null) return holdEnd.how === 'goes-on' ? holdEnd.at : null
  return decision === null || decision.default === null || ended !== null ? null : decision.until
}

const COLOURS: Readonly<Record<Tone, Parameters<typeof styleText>[0] | null>> = {
  plain: null,
  quiet: 'dim',
  strong: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
}

/** A text in the colour of its tone, for lines that are written to a terminal. */
export function paintTone(text: string, tone: Tone): string {
  const style = COLOURS[tone]
  return style === null || text === '' ? text : styleText(style, text, { validateStream: false })
}

/** Whether a decision says so much that it is told where it is asked, and not in a line of what happened. */
function isToldWhereAsked({ body, at, until }: { body: string; at: string; until: string }): boolean {
  return body.trim() !== '' && Date.parse(until) > Date.parse(at)
}

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
