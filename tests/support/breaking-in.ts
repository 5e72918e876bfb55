import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Recorded } from '../../src/core/events/events.ts'
import type { GateResult } from '../../src/core/events/outcome.ts'
import type { MemorySnapshot } from '../../src/core/shapes/memory.ts'
import type { ReplyCode } from '../../src/core/shapes/reply.ts'
import { handleCommand } from '../../src/project/commands/commands.ts'
import type { Command } from '../../src/session/records/control.ts'
import { endsAs, ofType, type Play, type PlayOptions, playSession, type Ran, UNCLAIMED } from './played-session.ts'
import { worked } from './session-events.ts'

export const HOUR = 3_600_000
export const works = endsAs(worked, 1000)
export const busy = endsAs({ class: 'throttle', message: 'slow down' })
export const forEver: Play = () => new Promise(() => {})
export const never: Play = () => {
  throw new Error('no round was to run')
}

/** What a person asks, in the words of `codemachine …`. */
type RunOverrides =
  | 'interrupt'
  | 'skip'
  | 'unpause'
  | 'pause'
  | 'retry'
  | 'put-plan-back'
  | 'stop'
  | 'stop --now'
  | `replan ${string}`
  | `steer ${string}`
  | `decide ${string}`

/** What a person says when this event happens for the nth time (without it, each time), so many ms later. */
export interface Cue {
  on: Recorded['type']
  nth?: number | 'each'
  afterMs?: number
  say: readonly RunOverrides[]
}

/** A gate, or a command, that runs until it is broken off. */
export async function untilBrokenOff(signal: AbortSignal): Promise<Partial<GateResult>> {
  await new Promise(resolve => signal.addEventListener('abort', resolve))
  return { status: 'broken-off', exitCode: null }
}

interface Answered extends Ran {
  /** What the person was answered. */
  replies: string[]
  codes: ReplyCode[]
}

/** Plays a session in which a person says things. */
export async function runSession(
  plays: readonly Play[],
  cues: readonly Cue[],
  options: Omit<PlayOptions, 'folder'> = {},
): Promise<Answered> {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-break-in-'))
  const replies: string[] = []
  const codes: ReplyCode[] = []
  const seen = new Map<string, number>()
  const isMeant = ({ on, nth = 1 }: Cue, type: string) => on === type && (nth === 'each' || nth === seen.get(type))
  try {
    const ran = await playSession(plays, {
      folder,
      ...options,
      onEvent: (event, playing) => {
        options.onEvent?.(event, playing)
        const { runner, asked, clock } = playing
        seen.set(event.type, (seen.get(event.type) ?? 0) + 1)
        const session = { id: 's', runner, asked, waiting: async () => 0, limit: null }
        for (const cue of cues.filter(each => isMeant(each, event.type))) {
          void clock.wait(cue.afterMs ?? 1).then(async () => {
            for (const said of cue.say) {
              const { code, message } = await handleCommand(commandOf(said), session, () => {})
              codes.push(code)
              replies.push(message)
            }
          })
        }
      },
    })
    return { ...ran, replies, codes }
  } finally {
    // The record of the last round is closed beside what comes after it.
    await rm(folder, { recursive: true, maxRetries: 10 })
  }
}

function commandOf(said: RunOverrides): Command {
  const at = new Date(0).toISOString()
  const [type, ...words] = said.split(' ')
  const text = words.join(' ')
  if (type === 'replan' && words[0] === '--go') return { type, text: words.slice(1).join(' '), go: true, at }
  if (type === 'replan' || type === 'steer') return { type, text, at }
  if (type === 'decide') {
    const [choice = '', ...said] = words
    return { type, choice, at, ...(said.length === 0 ? {} : { text: said.join(' ') }) }
  }
  if (type === 'stop') return { type, now: text === '--now', at }
  return { type: type as 'interrupt' | 'skip' | 'unpause' | 'pause' | 'retry' | 'put-plan-back', at }
}

/** The rounds that ended: number, class, whether they counted. */
export function roundsOf(events: readonly Recorded[]) {
  return ofType(events, 'round-ended').map(({ round, outcome, counts }) => [round, outcome.class, counts])
}

/** Memory files that hold these texts. */
export function written(main: string, tasks = ''): MemorySnapshot {
  return { ...UNCLAIMED, texts: { main, tasks } }
}
