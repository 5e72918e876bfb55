import { truncate } from '../../base/text.ts'
import { type WayToTest, WORDS_FOR_STATUS, waysToTest } from './project-info.ts'
import type { StepWork, TeamWork, ToldCommand } from './work.ts'

/** What was run, as the reviewer is given it. */
interface ExecutionSummary {
  steps: readonly SummedStep[]
  /** How the project was tested. */
  tests: readonly Pick<WayToTest, 'for' | 'run' | 'ran'>[]
}

/** A step in it: its commands with the end of what they printed, in their order. */
interface SummedStep {
  step: number
  description: string
  status: string
  /** What its worker says of it; null: nothing. */
  thoughts: string | null
  /** What was missing when it was not done; null: nothing is. */
  missing: string | null
  /** How many commands were run for it. */
  commands_run: number
  last_commands: readonly { command: string; returncode: number | null; output: string }[]
  files: readonly string[]
}

/** The most of a summary as JSON, and of all that is said beside commands, in characters. */
const MOST_SUMMARY = 60_000
const MOST_SAID = 30_000
/** Of a text in it, of a path, of files; and what the names of its fields take. */
const MOST_TEXT = 1_200
const MOST_PATH = 120
const MOST_FILES = 20
const MOST_TESTS = 10
const ROOM_FOR_STEP = 180

/**
 * What was run for each step, and how the project was tested: at most 60,000 characters as JSON. Where there is no room for all,
 * the commands of steps that have failed and those that have failed themselves are told, and then the newest. Pure.
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

/** What is said of a step beside its commands, in about so many characters. */
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

/** A text that takes at most so many characters as JSON. */
function bounded(text: string, most: number): string {
  const cut = truncate(text.trim(), most)
  return sizeOf(cut) <= most + 2 ? cut : truncate(cut, Math.floor(most / 6))
}

/** Paths as long as there is room for them. */
function within(paths: readonly string[], most: number): string[] {
  let room = most
  return paths.flatMap(path => {
    const shown = bounded(path, MOST_PATH)
    room -= sizeOf(shown) + 1
    return room < 0 ? [] : [shown]
  })
}

/** The commands of each step for which there is room, in their order. */
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
