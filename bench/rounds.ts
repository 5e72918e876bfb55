import { loadPrompt } from '../src/base/package.ts'
import type { Script } from '../src/demo/model/reply.ts'
import { message, reply, shell } from '../src/demo/model/reply.ts'
import { findRealCodex } from '../tests/support/find-real-codex.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { openFloor } from './floor.ts'
import { median } from './median.ts'
import { runCodemachine, runCommand } from './run-command.ts'

const GOAL = 'Keep the README of this project up to date.'
const FEW = { rounds: 20, runs: 5, floorRuns: 5 }
const MANY = { rounds: 100, runs: 3, floorRuns: 1 }

/**
 * Rounds of codemachine against as many times `codex exec`, one after the other, and against the floor: the least that
 * can drive codex through the same (bench/floor.ts). The model answers at once.
 */
export async function rounds(): Promise<Figure[]> {
  const seen = new Seen()
  await using model = await startScriptedModel({ script: seen.script, keptRequests: 1 })
  const codex = await findNativeCodex()
  await using place = await makePlace(model.codexConfig('scripted'))
  await using execPlace = await makePlace(model.codexConfig('scripted'))
  await using floorPlace = await makePlace(model.codexConfig('scripted'))
  // The first start in a CODEX_HOME makes its databases.
  await runExec(codex, execPlace)
  const floor = await openFloor(codex, place, floorPlace, GOAL)
  await floor.run(1)
  const runners: Record<Runner, (rounds: number) => Promise<number>> = {
    exec: async rounds => {
      let ms = 0
      for (let run = 0; run < rounds; run++) ms += await runExec(codex, execPlace)
      return ms
    },
    floor: rounds => floor.run(rounds),
    askingFloor: rounds => floor.run(rounds, true),
    codemachine: async rounds => {
      const args = ['--json', '--rounds', String(rounds), '--codex-bin', codex, GOAL]
      return (await runCodemachine(args, 3, { cwd: place.directory, env: place.env })).wallMs
    },
  }
  const few = await measure(FEW, runners, seen)
  const many = await measure(MANY, runners, seen)
  return [
    ...timesOf(FEW.rounds, few),
    { what: `codemachine, ${FEW.rounds} rounds, against codex exec`, value: few.ratio, unit: 'x', target: atMost(0.8) },
    {
      what: 'the same, above the floor',
      value: few.above,
      unit: 'x',
      target: atMost(0.06),
    },
    ...timesOf(MANY.rounds, many),
    {
      what: `codemachine, ${MANY.rounds} rounds, against codex exec`,
      value: many.ratio,
      unit: 'x',
      target: atMost(0.62),
    },
  ]
}

type Runner = 'exec' | 'floor' | 'askingFloor' | 'codemachine'

/** Medians: of what each took, ms; of what codemachine and the floors took against codex exec; and of the difference to the floor. */
type Medians = Record<Runner, number> & { ratio: number; floorRatio: number; askingRatio: number; above: number }

/** So many rounds by each, taking turns. Throws if they did not do the same work. */
async function measure(
  { rounds, runs, floorRuns }: typeof FEW,
  runners: Record<Runner, (rounds: number) => Promise<number>>,
  seen: Seen,
): Promise<Medians> {
  const times: Record<Runner, number>[] = []
  for (let run = 0; run < runs; run++) {
    const took = { exec: Number.NaN, floor: Number.NaN, askingFloor: Number.NaN, codemachine: Number.NaN }
    const work: Work[] = []
    for (const runner of ['exec', 'floor', 'askingFloor', 'codemachine'] as const) {
      if (/floor/i.test(runner) && run >= floorRuns) continue
      seen.reset()
      took[runner] = await runners[runner](rounds)
      work.push(seen.reset())
    }
    compareWork(work, rounds)
    times.push(took)
  }
  const medianOf = (pick: (took: Record<Runner, number>) => number) =>
    median(times.map(pick).filter(value => !Number.isNaN(value)))
  return {
    exec: medianOf(took => took.exec),
    floor: medianOf(took => took.floor),
    askingFloor: medianOf(took => took.askingFloor),
    codemachine: medianOf(took => took.codemachine),
    ratio: medianOf(took => took.codemachine / took.exec),
    floorRatio: medianOf(took => took.floor / took.exec),
    askingRatio: medianOf(took => took.askingFloor / took.exec),
    above: medianOf(took => (took.codemachine - took.floor) / took.exec),
  }
}

function timesOf(rounds: number, medians: Medians): Figure[] {
  return [
    shown(`codex exec, ${rounds} times`, medians.exec, 'ms'),
    shown(`codemachine --rounds ${rounds}`, medians.codemachine, 'ms'),
    shown(`the floor, ${rounds} rounds, against codex exec`, medians.floorRatio, 'x'),
    shown('the same, where codex asks lsb_release', medians.askingRatio, 'x'),
  ]
}

/** The native codex in node_modules, as codemachine itself finds it. */
export async function findNativeCodex(): Promise<string> {
  return (await findRealCodex()).path
}

async function runExec(codex: string, { directory, env }: TestPlace): Promise<number> {
  const prompt = `${loadPrompt('goal')}\n\n${GOAL}`
  const args = ['exec', '--json', '--sandbox', 'workspace-write', prompt]
  return (await runCommand(codex, args, 0, { cwd: directory, env })).wallMs
}

/** What reached the model: how often a command's output came back to it, and how large its requests were. */
interface Work {
  outputs: number
  meanRequestChars: number
}

/** A script of one command and a closing message, and a count of what it saw. */
class Seen {
  #outputs = 0
  #requests = 0
  #chars = 0

  readonly script: Script = request => {
    this.#requests++
    this.#chars += JSON.stringify(request.body).length
    if (!request.lastOutputs.some(output => output.includes('back-from-the-shell'))) {
      return reply(shell('echo back-from-the-shell'))
    }
    this.#outputs++
    return reply(message('This is as far as it goes.'))
  }

  reset(): Work {
    const work = { outputs: this.#outputs, meanRequestChars: this.#chars / this.#requests }
    this.#outputs = this.#requests = this.#chars = 0
    return work
  }
}

function compareWork(each: readonly Work[], rounds: number): void {
  const sizes = each.map(work => work.meanRequestChars)
  if (each.every(work => work.outputs === rounds) && Math.max(...sizes) < 1.1 * Math.min(...sizes)) return
  throw new Error(`They did not do the same work: ${JSON.stringify(each)}`)
}
