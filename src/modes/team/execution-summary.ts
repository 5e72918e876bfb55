import { truncate } from '../../base/text.ts'
import { type WayToTest, WORDS_FOR_STATUS, waysToTest } from './project-info.ts'
import type { StepWork, TeamWork, ToldCommand } from './work.ts'

/** Summary of all commands for the reviewer. */
interface ExecutionSummary {
  steps: readonly SummedStep[]
  /** How the project was tested. */
  tests: readonly Pick<WayToTest, 'for' | 'run' | 'ran'>[]
}

/** A step of the summary: its commands in order, with the ends of their output. */
interface SummedStep {
  step: number
  description: string
  status: string
  /** The worker's words on it; null: none. */
  thoughts: string | null
  /** What was missing when it was not done; null: nothing. */
  missing: string | null
  /** Number of commands that ran for it. */
  commands_run: number
  last_commands: readonly { command: string; returncode: number | null; output: string }[]
  files: readonly string[]
}

/** Most characters of a summary as JSON, and of its parts other than commands. */
const MOST_SUMMARY = 60_000
const MOST_SAID = 30_000
/** Of a text in it, of a path, of files; and what the names of its fields take. */
const MOST_TEXT = 1_200
const MOST_PATH = 120
const MOST_FILES = 20
const MOST_TESTS = 10
const ROOM_FOR_STEP = 180

/**
 * Returns the commands of each step, and the tests: at most 60,000 characters as JSON. If space is short, it prefers
 * commands of failed steps and failed commands, then the newest. Pure.
 */
export function executionSummary(own: Pick<TeamWork, 'steps' | 'howToTest'>, directory: string): ExecutionSummary {
  const { steps } = own
  const share = Math.floor(MOST_SAID / Math.max(1, steps.length))
  const said = steps.map(step => ({ ...saidOf(step, share), last_commands: [] }))
  const tests = waysToTest(own, directory)
    .slice(0, MOST_TESTS)
    .map(({ for: purpose, run, ran }) => ({
      for: bounded(purpose, 200),
      run: bounded(run, 400),
      ran: bounded(ran, 200),
    }))
  const told = chosenCommands(steps, MOST_SUMMARY - sizeOf({ steps: said, tests }))
  return { steps: said.map((step, at) => ({ ...step, last_commands: told[at] ?? [] })), tests }
}

/** Returns a step's part other than its commands, in about this many characters. */
function saidOf(step: StepWork, share: number): Omit<SummedStep, 'last_commands'> {
  const { id, description, status, thoughts, missing, commands, files } = step
  const room = Math.max(60, share - ROOM_FOR_STEP)
  const most = Math.min(MOST_TEXT, Math.floor(room / 4))
  const text = (each: string | null) => (each === null ? null : bounded(each, most))
  return {
    step: id,
    description: bounded(description, most),
    status: WORDS_FOR_STATUS[status],
    thoughts: text(thoughts),
    missing: status === 'done' ? null : text(missing),
    commands_run: commands,
    files: within(files.slice(0, MOST_FILES), most),
  }
}

/** Cuts a text to this many characters as JSON. */
function bounded(text: string, most: number): string {
  const cut = truncate(text.trim(), most)
  return sizeOf(cut) <= most + 2 ? cut : truncate(cut, Math.floor(most / 6))
}

/** Returns paths while there is space. */
function within(paths: readonly string[], most: number): string[] {
  let room = most
  return paths.flatMap(path => {
    const shown = bounded(path, MOST_PATH)
    room -= sizeOf(shown) + 1
    return room < 0 ? [] : [shown]
  })
}

/** Returns the commands of each step that fit, in order. */
function chosenCommands(steps: readonly StepWork[], most: number): SummedStep['last_commands'][] {
  const all = steps.flatMap((step, at) =>
    step.told.map(told => ({ at, told: commandOf(told), isBad: step.status === 'failed' || told.exitCode !== 0 })),
  )
  let room = most
  const chosen = new Set(
    all
      .toReversed()
      .sort((a, b) => Number(b.isBad) - Number(a.isBad))
      .filter(({ told }) => {
        room -= sizeOf(told) + 1
        return room >= 0
      }),
  )
  return steps.map((_, step) => all.filter(each => each.at === step && chosen.has(each)).map(({ told }) => told))
}

function commandOf({ command, exitCode, output }: ToldCommand) {
  return { command, returncode: exitCode, output }
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length
}
