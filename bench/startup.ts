import { makePlace } from '../tests/support/place.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'
import { ANSWER_VERSION } from './peers.ts'
import { BIN, runCodemachine, runCommand } from './run-command.ts'

const RUNS = 25
const COMMANDS = {
  empty: ['-e', '0'],
  version: [BIN, '--version'],
  help: [BIN, '--help'],
  status: [BIN, 'status'],
  queueAdd: [BIN, 'queue', 'add', 'Go on.'],
} as const
type Name = keyof typeof COMMANDS

/** How long the command line takes for what needs little or no work, against an empty Node. */
export async function startup(): Promise<Figure[]> {
  await using place = await makePlace('')
  const { directory: cwd, env } = place
  const peer = await writePeer(place.root, ANSWER_VERSION)
  await runCodemachine(['--json', '--rounds', '1', '--codex-bin', peer, 'Go on.'], 3, { cwd, env })
  const times: Record<Name, number[]> = { empty: [], version: [], help: [], status: [], queueAdd: [] }
  for (let run = 0; run <= RUNS; run++) {
    for (const name of Object.keys(COMMANDS) as Name[]) {
      const { wallMs, stdout } = await runCommand(process.execPath, COMMANDS[name], 0, { cwd, env })
      // So that the next finds as many prompts waiting.
      if (name === 'queueAdd') await runCommand(process.execPath, [BIN, 'queue', 'rm', idIn(stdout)], 0, { cwd, env })
      // The first run fills the caches, of the files and of compiled code.
      if (run > 0) times[name].push(wallMs)
    }
  }
  const empty = median(times.empty)
  const row = (name: Name, what: string, target: number): Figure => ({
    what: `codemachine ${what}, against it`,
    value: median(times[name]) / empty,
    unit: 'x',
    target: atMost(target),
  })
  return [
    shown('node -e 0', empty, 'ms'),
    row('version', '--version', 1.15),
    row('help', '--help', 1.4),
    row('status', 'status', 2),
    row('queueAdd', 'queue add', 2),
  ]
}

function idIn(stdout: string): string {
  const id = /\b\d+\b/.exec(stdout)?.[0]
  if (id === undefined) throw new Error(`There is no id of a prompt in: ${stdout}`)
  return id
}
