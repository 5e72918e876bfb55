import type { Reply, ReplyCode } from '../../core/shapes/reply.ts'
import type { PersonAsked } from '../../session/person.ts'
import type { Command } from '../../session/records/control.ts'
import type { Session } from '../../session/session.ts'
import type { AskedLimits } from '../watch/live-settings.ts'

/** The running session, and how a person reaches it. */
export interface RunningSession {
  id: string
  runner: Session
  asked: PersonAsked
  /** Returns the number of prompts in the queue. */
  waiting(): Promise<number>
  /** Sets the session's total limits from its next round on; null: its limits are fixed. */
  limit: ((wanted: AskedLimits) => void) | null
}

/** A command of this type. */
export type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>

/** Reply of a session that accepts no more commands of this kind. */
export function aboutToEnd(id: string): Reply {
  return refused('ending', `${id} is about to end; codemachine resume continues.`)
}

/** Reply for a command that is carried out; `message` says what happens. */
export function done(message: string): Reply {
  return { code: 'done', message }
}

/** Reply for a refused command; `message` says why. */
export function refused(code: Exclude<ReplyCode, 'done' | 'kept'>, message: string): Reply {
  return { code, message }
}

/** Reply if a run exists, but no session in it. */
export const NOBODY = refused('no-session', 'No session is running now. Try again in a moment.')
/** Command with which a person answers from a terminal. */
export const TO_DECIDE = 'codemachine decide'
/** Longest shown part of a name or label, in characters. */
export const LABEL_CHARS = 200
