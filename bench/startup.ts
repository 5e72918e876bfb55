import { atMost, type Figure } from './figure.ts'
import { median } from './median.ts'
import { BIN, runCommand } from './run-command.ts'

const RUNS = 25

/** How long the command line takes to say something that needs no work, against an empty Node. */
export async function startup(): Promise<Figure[]> {
  const commands = { empty: ['-e', '0'], version: [BIN, '--version'], help: [BIN, '--help'] }
  const times: Record<keyof typeof commands, number[]> = { empty: [], version: [], help: [] }
  for (let run = 0; run <= RUNS; run++) {
    for (const name of ['empty', 'version', 'help'] as const) {
      const { wallMs } = await runCommand(process.execPath, commands[name], 0)
      // The first run fills the caches, of the files and of compiled code.
      if (run > 0) times[name].push(wallMs)
    }
  }
  const [empty, version, help] = [median(times.empty), median(times.version), median(times.help)]
  return [
    { what: 'node -e 0', value: empty, unit: 'ms', target: null },
    { what: 'codemachine --version, against it', value: version / empty, unit: 'x', target: atMost(1.5) },
    { what: 'codemachine --help, against it', value: help / empty, unit: 'x', target: atMost(2) },
  ]
}
