import { message, reply, shell } from '../src/demo/model/reply.ts'
import { makePlace } from '../tests/support/place.ts'
import { startScriptedModel } from '../tests/support/scripted-model.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'
import { findNativeCodex } from './rounds.ts'
import { runCodemachine, runCommand } from './run-command.ts'

const RUNS = 15
const GOAL = 'Keep the README of this project up to date.'

/** What comes before the first request of the first round, and after the last round, with a model that answers at once. */
export async function oneRound(): Promise<Figure[]> {
  let requestedAt: number | null = null
  await using model = await startScriptedModel({
    keptRequests: 1,
    script: request => {
      requestedAt ??= performance.now()
      return reply(request.step === 0 ? shell('echo more >> notes.txt') : message('This is as far as it goes.'))
    },
  })
  const codex = await findNativeCodex()
  await using place = await makePlace(model.codexConfig('scripted'))
  await using execPlace = await makePlace(model.codexConfig('scripted'))
  const untilRequest = async (run: () => Promise<unknown>) => {
    requestedAt = null
    const startedAt = performance.now()
    await run()
    if (requestedAt === null) throw new Error('Nothing was asked of the model.')
    return requestedAt - startedAt
  }
  const times = { node: [] as number[], exec: [] as number[], start: [] as number[], end: [] as number[] }
  for (let run = 0; run <= RUNS; run++) {
    const { wallMs } = await runCommand(process.execPath, ['-e', '0'], 0)
    const exec = await untilRequest(() =>
      runCommand(codex, ['exec', '--json', '--sandbox', 'workspace-write', GOAL], 0, {
        cwd: execPlace.directory,
        env: execPlace.env,
      }),
    )
    let endedAt = Number.NaN
    const start = await untilRequest(() =>
      runCodemachine(['--json', '--rounds', '1', '--codex-bin', codex, GOAL], 3, {
        cwd: place.directory,
        env: place.env,
        onStdout: text => {
          if (text.includes('"type":"round-ended"')) endedAt = performance.now()
        },
      }),
    )
    const end = performance.now() - endedAt
    // The first run fills the caches, and makes the databases of codex.
    if (run === 0) continue
    times.node.push(wallMs)
    times.exec.push(exec)
    times.start.push(start)
    times.end.push(end)
  }
  const [node, exec, start, end] = [median(times.node), median(times.exec), median(times.start), median(times.end)]
  return [
    shown('codex exec, from its start to its first request', exec, 'ms'),
    shown('codemachine, the same', start, 'ms'),
    { what: 'against codex exec', value: start / exec, unit: 'x', target: atMost(1.2) },
    shown('node -e 0', node, 'ms'),
    shown('codemachine, from the end of the last round to its exit', end, 'ms'),
    { what: 'against node -e 0', value: end / node, unit: 'x', target: atMost(3) },
  ]
}
