import { setFlagsFromString } from 'node:v8'
import type { Clock } from '../base/clock.ts'
import { type RunningHolder, startHolder } from './end-processes.ts'
import type { WritableByAgents } from './files.ts'
import { type Holder, holderOn } from './processes.ts'
import { findProgram, pathVariable, searchPathOutside } from './run-process.ts'

export interface KeepAwakeOptions {
  platform: NodeJS.Platform
  env: Readonly<NodeJS.ProcessEnv>
  /** Of this process: what keeps the machine awake ends with it. */
  pid: number
  clock: Clock
  /** No program is taken from there. */
  where: WritableByAgents
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal
}

/** What keeps the machine awake until it is disposed of. */
export interface KeptAwake extends AsyncDisposable {
  /** Name of the program; null: nothing does. */
  by: string | null
  /** Why nothing does, a sentence. */
  problem: string | null
}

/**
 * Keeps the machine from going to sleep by itself, with a program of the system that lives as long as this process,
 * however that ends. Resolves once it is known whether it holds, within 15 s; never rejects.
 */
export async function keepAwake(options: KeepAwakeOptions): Promise<KeptAwake> {
  const holder = holderOn(options.platform, options.pid)
  if (holder === null) return nothing(`codemachine knows no way to keep a machine awake on ${options.platform}.`)
  const { path, passedOver } = await findProgram(holder.program, options)
  if (path === null) return nothing(notFound(holder, passedOver))
  const running = startHolder(path, holder, environmentOf(options))
  const problem = await problemOf(running, holder, options)
  if (problem !== null) {
    await running.end(options)
    return nothing(problem)
  }
  return { by: holder.program, problem: null, [Symbol.asyncDispose]: () => running.end(options) }
}

/** What Windows needs to compile one line of C# on a machine that is busy. */
const ANSWER_MS = 15_000
/** After which a program that says nothing is believed. */
const SETTLE_MS = 2000
const REASON_CHARS = 200

function nothing(problem: string): KeptAwake {
  return { by: null, problem, [Symbol.asyncDispose]: async () => {} }
}

function notFound({ program }: Holder, passedOver: readonly string[]): string {
  return passedOver.length === 0
    ? `${program} was not found on the PATH.`
    : `${program} was found only where an agent can write, and is not used: ${passedOver.join(', ')}.`
}

/** With a PATH on which what the program starts is no agent's either. */
function environmentOf({ env, where }: KeepAwakeOptions): NodeJS.ProcessEnv {
  const name = pathVariable(env)
  return { ...env, [name]: searchPathOutside(env[name] ?? '', where) }
}

/** Why it does not hold; null if it does. */
async function problemOf(running: RunningHolder, holder: Holder, options: KeepAwakeOptions): Promise<string | null> {
  const { clock, signal } = options
  const answered = new AbortController()
  const bound = clock.wait(
    holder.says ? ANSWER_MS : SETTLE_MS,
    signal === undefined ? answered.signal : AbortSignal.any([answered.signal, signal]),
  )
  const answer = await Promise.race([running.answer, bound.then(() => null)])
  answered.abort()
  if (answer?.holds) return null
  if (answer !== null) return `${holder.program} ${answer.how}${because(answer.said)}.`
  if (signal?.aborted) return `codemachine ended before ${holder.program} had answered.`
  return holder.says ? `${holder.program} did not answer within ${ANSWER_MS / 1000} s, and was ended.` : null
}

/** The last line that it said. */
function because(said: string): string {
  const line = said
    .toWellFormed()
    .split('\n')
    .map(each => each.replace(/[\p{Cc}\s]+/gu, ' ').trim())
    .findLast(each => each !== '')
  return line === undefined ? '' : `: ${line.slice(0, REASON_CHARS).replace(/[.\uD800-\uDBFF]+$/, '')}`
}

/**
 * A run waits for hours and works for milliseconds, so its memory counts, and the speed of its hot loops does not: the
 * young generation does not grow (by itself it takes 130 MB when codex says much), the old one grows in small steps,
 * and the last optimizing compiler stays out. Measured: 230 MB become 82, at the same number of messages a second
 * (docs/benchmarks.md).
 */
const FLAGS = ['--semi-space-growth-factor=1', '--heap-growing-percent=20', '--no-turbofan']

/** Makes V8 prefer a small heap to a fast one, from now on. V8 reads these three while it runs. */
export function keepHeapSmall(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
}

/**
 * The same for a process that draws a screen, which never has to be as quick as one that only listens to codex. Measured:
 * after 100,000 events 106 MB in place of 119, and 1.08 times what it is after 1,000 in place of 1.13; a fifth fewer messages a second.
 */
export function keepScreenSmall(): void {
  keepHeapSmall()
  setFlagsFromString('--optimize-for-size')
}
