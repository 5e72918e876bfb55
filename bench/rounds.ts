import { loadPrompt } from '../src/base/package.ts'
import type { Script } from '../src/demo/model/reply.ts'
import { message, reply, shell } from '../src/demo/model/reply.ts'
import { startScriptedModel } from '../src/demo/model/scripted-model.ts'
import { findRealCodex } from '../tests/support/find-real-codex.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { runCodemachine, runCommand } from './run-command.ts'

const ROUNDS = 20
const PAIRS = 3
const GOAL = 'Keep the README of this project up to date.'

/** 20 rounds of codemachine against 20 times `codex exec`, one after the other, with a model that answers at once. */
export async function rounds(): Promise<Figure[]> {
  const seen = new Seen()
  await using model = await startScriptedModel({ script: seen.script, keptRequests: 1 })
  const codex = await findNativeCodex()
  await using place = await makePlace(model.codexConfig('scripted'))
  await using execPlace = await makePlace(model.codexConfig('scripted'))
  // The first start in a CODEX_HOME makes its databases.
  for (const each of [place, execPlace]) await runExec(codex, each)

  const times: { codemachine: number; exec: number }[] = []
  for (let pair = 0; pair < PAIRS; pair++) {
    seen.reset()
    const { wallMs } = await runCodemachine(['--json', '--rounds', String(ROUNDS), '--codex-bin', codex, GOAL], 3, {
      cwd: place.directory,
      env: place.env,
    })
    const ours = seen.reset()
    let exec = 0
    for (let run = 0; run < ROUNDS; run++) exec += await runExec(codex, execPlace)
    compareWork(ours, seen.reset())
    times.push({ codemachine: wallMs, exec })
  }
  return [
    { what: `codex exec, ${ROUNDS} times`, value: median(times.map(time => time.exec)), unit: 'ms', target: null },
    {
      what: `codemachine --rounds ${ROUNDS}`,
      value: median(times.map(time => time.codemachine)),
      unit: 'ms',
      target: null,
    },
    {
      what: 'codemachine, against codex exec',
      value: median(times.map(time => time.codemachine / time.exec)),
      unit: 'x',
      target: atMost(0.8),
    },
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

function compareWork(ours: Work, theirs: Work): void {
  const same = ours.outputs === ROUNDS && theirs.outputs === ROUNDS
  const sizes = ours.meanRequestChars / theirs.meanRequestChars
  if (same && sizes > 0.9 && sizes < 1.1) return
  throw new Error(`They did not do the same work: ${JSON.stringify({ ours, theirs })}`)
}
